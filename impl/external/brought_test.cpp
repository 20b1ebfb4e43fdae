// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "impl/external/session.h"

namespace lossgate::impl {
namespace {

TEST(BroughtImplementation, AllowsForWeightGradientsThatComeInSixteenBits) {
  Subject subject;
  subject.arithmetic.compute = Dtype::f32;
  const auto roundoff = [&](Axis first, Dtype stored) {
    LossSignature loss;
    loss.fields = {{"x", Role::differentiable, Quantity::weight, {first, Axis::hidden}}};
    const Arithmetic arithmetic = brought_implementation(subject, loss, nullptr).arithmetic(stored);
    EXPECT_EQ(arithmetic.roundoff, unit_roundoff(Dtype::f32));
    return arithmetic.stage(Stage::accumulate).roundoff;
  };
  EXPECT_EQ(roundoff(Axis::vocab, Dtype::bf16), unit_roundoff(Dtype::bf16));
  EXPECT_EQ(roundoff(Axis::vocab, Dtype::f32), unit_roundoff(Dtype::f32));
  EXPECT_EQ(roundoff(Axis::sequences, Dtype::bf16), unit_roundoff(Dtype::f32));
}

TEST(BroughtImplementation, AllowsForATrainerWhoAddsInLessThanTheFunctionComputesIn) {
  const LossSignature loss;
  const auto accumulated = [&](const Subject& subject, Dtype stored) {
    return brought_implementation(subject, loss, nullptr)
        .arithmetic(stored)
        .stage(Stage::accumulate);
  };
  Subject wide;
  wide.arithmetic.compute = Dtype::f64;
  EXPECT_EQ(accumulated(wide, Dtype::f64).roundoff, unit_roundoff(Dtype::f64));
  for (const Dtype stored : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    EXPECT_EQ(accumulated(wide, stored).roundoff, unit_roundoff(Dtype::f32)) << name(stored);
    EXPECT_EQ(accumulated(wide, stored).eta, min_subnormal(Dtype::f32)) << name(stored);
  }
  wide.arithmetic.stages = {{Stage::loss, std::nullopt}};
  EXPECT_EQ(accumulated(wide, Dtype::bf16).roundoff, unit_roundoff(Dtype::bf16))
      << "each part's loss is stored so";
}

TEST(BroughtImplementation, IsAskedFieldsInTheDtypesAndAsSmallAsItsCallersHaveThem) {
  LossSignature loss;
  loss.fields = {{"x", Role::differentiable, Quantity::value, {Axis::sequences}},
                 {"y", Role::constant, Quantity::value, {Axis::sequences}}};
  Subject subject;
  subject.dtypes = {Dtype::bf16, Dtype::f32};
  subject.largest = {{"y", 3.0}};
  EXPECT_TRUE(std::isinf(narrowed(loss, subject).fields[0].largest));
  EXPECT_EQ(narrowed(loss, subject).fields[1].largest, 3.0);
  const auto unsupported = [&](Dtype x, Dtype y) {
    Case c;
    c.batch.fields.emplace_back("x", Tensor::zeros(x, {1}));
    c.batch.fields.emplace_back("y", Tensor::zeros(y, {1}));
    return brought_implementation(subject, narrowed(loss, subject), nullptr).unsupported(c);
  };
  EXPECT_EQ(unsupported(Dtype::bf16, Dtype::bf16), std::nullopt);
  EXPECT_EQ(unsupported(Dtype::bf16, Dtype::f32), "y of f32 is not asked");
  subject.wide = {"y"};
  EXPECT_EQ(unsupported(Dtype::bf16, Dtype::f32), std::nullopt);
  EXPECT_EQ(unsupported(Dtype::f32, Dtype::f32), std::nullopt);
  EXPECT_EQ(unsupported(Dtype::bf16, Dtype::bf16), "y of bf16 is not asked");
}

TEST(BroughtImplementation, NamesAllOptionsThatAreFixedToOtherValues) {
  const LossSignature loss;
  Subject subject;
  subject.options = {{"level", OptionValue("token")},
                     {"clamp", OptionValue(None{})},
                     {"penalty", OptionValue(0.5)}};
  const auto unsupported = [&](const char* level, double clamp) {
    Case c;
    c.batch.fields.emplace_back("x", Tensor::zeros(Dtype::f32, {1}));
    c.spec.options = {{"level", OptionValue(level)},
                      {"clamp", OptionValue(clamp)},
                      {"penalty", OptionValue(0.5)}};
    return brought_implementation(subject, loss, nullptr).unsupported(c);
  };
  EXPECT_EQ(unsupported("token", 20.0), "clamp is fixed");
  EXPECT_EQ(unsupported("sequence", 20.0), "level, clamp are fixed");
}

TEST(BroughtImplementation, IsAskedNoUpstreamGradientThatItsLossCannotHold) {
  LossSignature loss;
  loss.fields = {{"x", Role::differentiable, Quantity::value, {Axis::sequences, Axis::tokens}}};
  Subject subject;
  subject.dtypes = {Dtype::bf16, Dtype::f32};
  subject.arithmetic.stages = {{Stage::loss, std::nullopt}};
  const auto unsupported = [&](Dtype dtype, double upstream) {
    Case c;
    c.batch.fields.emplace_back("x", Tensor::zeros(dtype, {1, 1}));
    c.upstream = upstream;
    return brought_implementation(subject, loss, nullptr).unsupported(c);
  };
  EXPECT_EQ(unsupported(Dtype::bf16, 0.3),
            "the upstream gradient is no number of the loss's format");
  EXPECT_EQ(unsupported(Dtype::bf16, 65536.0), std::nullopt);
  EXPECT_EQ(unsupported(Dtype::f32, static_cast<double>(0.3F)), std::nullopt);
  subject.arithmetic.stages.clear();
  EXPECT_EQ(unsupported(Dtype::bf16, 0.3), std::nullopt);
}

TEST(BroughtImplementation, IsAskedNoTwoValuesOfWhatOneParameterStandsFor) {
  Subject subject;
  subject.tied = {{"clip_high", "clip_low"}};
  const auto unsupported = [&](double low, double high) {
    Case c;
    c.spec.options = {{"clip_low", low}, {"clip_high", high}};
    return brought_implementation(subject, LossSignature{}, nullptr).unsupported(c);
  };
  EXPECT_EQ(unsupported(0.2, 0.3), "clip_high follows clip_low");
  EXPECT_EQ(unsupported(0.3, 0.3), std::nullopt);
  subject.tied.clear();
  EXPECT_EQ(unsupported(0.2, 0.3), std::nullopt);
}

}  // namespace
}  // namespace lossgate::impl
