// SPDX-License-Identifier: Apache-2.0
#include "impl/external/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "impl/external/given_subject.h"
#include "impl/external/session.h"

namespace lossgate::impl {
namespace {

LossSignature divergence() {
  LossSignature loss;
  loss.id = "toy";
  loss.reductions = {Reduction::sum};
  loss.fields = {{"x", Role::differentiable, Quantity::logit, {Axis::sequences, Axis::tokens}},
                 {"mask", Role::mask, Quantity::mask, {Axis::sequences, Axis::tokens}}};
  loss.fields[1].dtypes = {Dtype::u8};
  loss.mask = "mask";
  loss.options = {
      {.name = "temperature", .standard = 1.0, .low = 0.05, .high = 10.0},
      {.name = "beta", .standard = 0.5, .low = 0.0, .high = 1.0},
      {.name = "items", .kind = Option::Kind::integer, .standard = 8.0, .low = 1.0, .high = 99.0}};
  return loss;
}

const LossSignature* find(std::string_view id) {
  static const LossSignature known = divergence();
  static const LossSignature policy = [] {
    LossSignature loss = divergence();
    loss.advantage = "x";
    return loss;
  }();
  return id == "toy" ? &known : &policy;
}

Subject parse(const std::string& lines, const char* loss = "toy") {
  return given_subject(lines, loss, find);
}

std::string complaint(const std::string& lines, const char* loss = "toy") {
  return complaint_of(lines, loss, find);
}

Subject scaled() {
  Subject subject;
  subject.scaled_by = "temperature";
  return subject;
}

/// Of two positions, the second of which does not count.
Case given(double temperature, double counts = 3.0, double masked = 3.0, Dtype dtype = Dtype::f32) {
  Case c;
  c.shape[Axis::sequences] = 1;
  c.shape[Axis::tokens] = 2;
  Tensor x = Tensor::zeros(dtype, {1, 2}), mask = Tensor::zeros(Dtype::u8, {1, 2});
  x.set(0, counts);
  x.set(1, masked);
  mask.set(0, 1.0);
  c.batch.fields = {{"x", x}, {"mask", mask}};
  c.spec.options = {{"temperature", temperature}, {"beta", 0.5}, {"items", 8.0}};
  return c;
}

std::optional<std::string> beyond(const Case& c, const Subject& subject = scaled()) {
  return beyond_scale(subject, narrowed(divergence(), subject), c);
}

TEST(Scale, IsTheSquareOfAnOption) {
  EXPECT_EQ(scale_of(scaled(), given(2.0).spec), 4.0);
  EXPECT_EQ(scale_of(scaled(), given(1.0).spec), 1.0);
  EXPECT_EQ(scale_of(Subject{}, given(2.0).spec), 1.0);
  EXPECT_EQ(scale_of(scaled(), given(0.0).spec), 1.0) << "it is there to be refused";
  EXPECT_EQ(scale_of(scaled(), given(std::nan("")).spec), 1.0);
}

TEST(Scale, IsAskedWhereItsSquareDividesWithoutRounding) {
  const LossSignature loss = narrowed(divergence(), scaled());
  const Option& option = *loss.find_option("temperature");
  EXPECT_EQ(option.kind, Option::Kind::integer);
  EXPECT_EQ(option.low, 1.0);
  EXPECT_EQ(option.high, 2.0);
  EXPECT_EQ(option.standard, OptionValue(1.0));
  EXPECT_EQ(loss.find_option("beta")->high, 1.0);
  EXPECT_EQ(narrowed(divergence(), Subject{}).find_option("temperature")->high, 10.0);
  Subject pinned = scaled();
  pinned.options = {{"temperature", 2.0}};
  EXPECT_EQ(narrowed(divergence(), pinned).find_option("temperature")->low, 2.0);
  for (const double fits : {1.0, 2.0}) EXPECT_EQ(beyond(given(fits)), std::nullopt) << fits;
  for (const double rounds : {3.0, 1.5, 0.5, 4.0}) {
    EXPECT_EQ(beyond(given(rounds)),
              "temperature is neither 1 nor 2, by whose square it is divided")
        << rounds;
  }
}

TEST(Scale, IsNotAskedWhereAMultipleOfTheFormulaMayNotFit) {
  const std::string reason = "temperature squared times numbers as large as those of x may not fit";
  EXPECT_EQ(beyond(given(2.0, 1e6)), std::nullopt);
  EXPECT_EQ(beyond(given(2.0, 1e30)), reason);
  EXPECT_EQ(beyond(given(1.0, 1e30)), std::nullopt) << "it is the formula there";
  EXPECT_EQ(beyond(given(2.0, 3.0, 3e38)), std::nullopt) << "what is masked is no part of it";
  EXPECT_EQ(beyond(given(2.0, -std::numeric_limits<double>::infinity())), std::nullopt);
  EXPECT_EQ(beyond(given(2.0, 3.0, 3.0, Dtype::f16)), reason);
  Subject wide = scaled();
  wide.arithmetic.compute = Dtype::f32;
  EXPECT_EQ(beyond(given(2.0, 6e4, 3.0, Dtype::f16), wide), std::nullopt);
  wide.arithmetic.stages = {{Stage::loss, std::nullopt}};
  EXPECT_EQ(beyond(given(2.0, 6e4, 3.0, Dtype::f16), wide), reason);
}

TEST(Scale, IsNotAskedOfAnUpstreamGradientThatItWouldPushIntoTheSubnormals) {
  Case c = given(2.0);
  c.upstream = 1e-30;
  EXPECT_EQ(beyond(c), "the upstream gradient over temperature squared may not fit");
  c.upstream = 0.0;
  EXPECT_EQ(beyond(c), std::nullopt);
  c.upstream = -65536.0;
  EXPECT_EQ(beyond(c), std::nullopt);
}

TEST(Scale, IsReadAsTheSquareOfAnOptionThatSpansOneAndTwo) {
  EXPECT_EQ(parse("scale = 'temperature^2'\n").scaled_by, "temperature");
  EXPECT_EQ(parse("").scaled_by, "");
  EXPECT_EQ(parse("scale = 'temperature^2'\noptions = { temperature = 2 }\n").scaled_by,
            "temperature");
  for (const char* other : {"'beta^2'", "'items^2'", "'temperature'", "'temperature^1'", "'T^2'"}) {
    EXPECT_NE(complaint(std::string("scale = ") + other + "\n")
                  .find("lossgate.toml:4:9: 'scale' must be one of temperature^2"),
              std::string::npos)
        << other << complaint(std::string("scale = ") + other + "\n");
  }
  EXPECT_NE(complaint("scale = 'temperature^2'\noptions = { temperature = 3 }\n")
                .find("'options' has another"),
            std::string::npos);
  EXPECT_NE(complaint("scale = 'temperature^2'\n", "policy").find("losses without an advantage"),
            std::string::npos);
}

TEST(Scale, KeepsABroughtImplementationFromWhatItCannotBeJudgedBy) {
  const LossSignature loss = narrowed(divergence(), scaled());
  const Implementation row = brought_implementation(scaled(), loss, nullptr);
  EXPECT_EQ(row.unsupported(given(2.0)), std::nullopt);
  EXPECT_NE(row.unsupported(given(3.0)), std::nullopt);
}

}  // namespace
}  // namespace lossgate::impl
