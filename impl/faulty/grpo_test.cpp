// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/grpo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "impl/cuda/grpo_host.h"
#include "impl/given_grpo_case.h"

namespace lossgate::impl {
namespace {

const LossSignature kSignature = grpo_signature_for_tests();
constexpr GrpoEntry kPadding = {0.0, 0.0, 0.0, 0.0, 0.0};

Implementation named(std::string_view name) {
  for (const auto& all : {eager_grpo_implementations(), faulty_grpo_implementations()}) {
    for (const Implementation& implementation : all) {
      if (implementation.name == name) return implementation;
    }
  }
  throw std::out_of_range(std::string(name));
}

LossResult evaluate(std::string_view name, const Case& c) {
  return named(name).evaluate(kSignature, c);
}

double loss(std::string_view name, const Case& c) { return evaluate(name, c).find("loss")->at(0); }

double gradient(std::string_view name, const Case& c, std::int64_t at = 0) {
  return evaluate(name, c).find("gradient.log_prob")->at(at);
}

/// A token whose log-ratio is d.
GrpoEntry token(double d, double advantage, double mask = 1.0) {
  return {-1.0 + d, -1.0, -1.0 + d, advantage, mask};
}

/// Sequences of 1 and 3 tokens of losses 4 and 1, each a micro-batch on a rank of its own.
Case uneven_case() {
  Case c =
      grpo_case({{token(0, -4), kPadding, kPadding}, {token(0, -1), token(0, -1), token(0, -1)}});
  c.split = {2, {{0, {0}}, {1, {1}}}};
  return c;
}

TEST(EagerGrpo, AgreesWithTheHostKernel) {
  for (const char* level : {"token", "sequence"}) {
    for (const char* kind : {"k1", "k2", "k3"}) {
      Case c = grpo_case({{{-1.0, -1.1, -0.7, 1.5, 1.0}, {-2.0, -1.2, -2.4, -0.5, 1.0}},
                          {{-0.1, -0.2, -0.3, -2.0, 1.0}, kPadding}},
                         Dtype::f64);
      c.spec.set("level", level);
      c.spec.set("kl_penalty", 0.5);
      c.spec.set("kl_estimator", kind);
      c.spec.set("kl_weighted", 1.0);
      c.spec.reduction = Reduction::sequence_mean;
      const LossResult expected = grpo_host().evaluate(kSignature, c);
      for (const char* name : {"eager", "data_parallel", "prescaled"}) {
        const LossResult actual = evaluate(name, c);
        for (const Output& output : expected.outputs) {
          for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
            EXPECT_NEAR(actual.find(output.name)->at(i), output.tensor.at(i), 1e-14)
                << name << " " << output.name << " " << level << " " << kind;
          }
        }
      }
    }
  }
}

TEST(EagerGrpo, SumsWhatItIsGivenInAnySplit) {
  for (const char* name : {"eager", "data_parallel", "prescaled"}) {
    EXPECT_EQ(loss(name, uneven_case()), 1.75) << name;
    EXPECT_EQ(gradient(name, uneven_case()), 1.0) << name;
  }
}

TEST(EagerGrpo, StaysFiniteWithoutClampsWhereTheResultDoesNotDependOnThem) {
  for (const char* level : {"token", "sequence"}) {
    for (double advantage : {1.0, 0.0}) {
      Case c = grpo_case({{token(1e4, advantage)}});
      c.spec.set("level", level);
      c.spec.set("log_ratio_clamp", None{});
      EXPECT_EQ(loss("eager", c), advantage == 0.0 ? 0.0 : -static_cast<double>(1.2f));
      EXPECT_EQ(gradient("eager", c), 0.0);
    }
  }
}

TEST(EagerGrpo, StaysFiniteBehindTheOutputClampOfTheKlTermAlone) {
  for (const char* kind : {"k1", "k2", "k3"}) {
    Case c = grpo_case({{{-1e4, -1e4, -1.0, 0.0, 1.0}}});
    c.spec.set("kl_penalty", 0.5);
    c.spec.set("kl_estimator", kind);
    c.spec.set("kl_input_clamp", None{});
    EXPECT_EQ(std::fabs(loss("eager", c)), 5.0) << kind;
    EXPECT_EQ(gradient("eager", c), 0.0) << kind;
  }
}

TEST(FaultyGrpo, LosesTheWholeBatchToOneMaskedToken) {
  const Case c = grpo_case({{token(0, 0), token(100, 0, 0)}});
  EXPECT_EQ(loss("eager", c), 0.0);
  EXPECT_TRUE(std::isnan(loss("unclamped_exp_mask_multiply", c)));
  EXPECT_EQ(loss("nan_to_num_gradient", c), 0.0);
  EXPECT_TRUE(std::isnan(gradient("nan_to_num_gradient", c, 1)));
}

TEST(FaultyGrpo, LosesTheGradientBehindAClampThatComesTooLate) {
  Case c = grpo_case({{token(100, 1)}});
  for (const char* name : {"clamp_ratio_after_exp", "clamp_in_caller_only"}) {
    EXPECT_FLOAT_EQ(static_cast<float>(loss(name, c)), -1.2f) << name;
    EXPECT_TRUE(std::isnan(gradient(name, c))) << name;
  }
  EXPECT_EQ(gradient("token_clamp_not_sequence", c), 0.0);
  c.spec.set("level", "sequence");
  EXPECT_TRUE(std::isnan(gradient("token_clamp_not_sequence", c)));
  EXPECT_EQ(gradient("eager", c), 0.0);

  Case kl = grpo_case({{{-101.0, -101.0, -1.0, 0.0, 1.0}}});
  kl.spec.set("kl_penalty", 0.5);
  EXPECT_EQ(loss("output_clamp_only", kl), 5.0);
  EXPECT_TRUE(std::isnan(gradient("output_clamp_only", kl)));
  EXPECT_EQ(gradient("eager", kl), 0.0);
}

TEST(FaultyGrpo, WeighsTheKlTermByTheWeightThatIsClampedAfterExp) {
  Case c = grpo_case({{{0.0, -10.0, -1.0, 0.0, 1.0}}});
  c.spec.set("log_ratio_clamp", 5.0);
  c.spec.set("kl_penalty", 0.5);
  c.spec.set("kl_weighted", 1.0);
  c.spec.set("kl_output_clamp", 1000.0);
  EXPECT_NEAR(loss("clamp_ratio_after_exp", c), loss("eager", c), 1e-3);
}

TEST(FaultyGrpo, OverflowsHalfPrecisionUnderTheClamp) {
  const Case c = grpo_case({{token(12, 1)}}, Dtype::f16);
  EXPECT_EQ(gradient("eager", c), 0.0);
  const Case exposed = grpo_case({{token(12, -1)}}, Dtype::f16);
  EXPECT_TRUE(std::isfinite(loss("eager", exposed)));
  EXPECT_TRUE(std::isinf(loss("f16_exp_under_clamp_20", exposed)));
  EXPECT_TRUE(named("f16_exp_under_clamp_20").unsupported(grpo_case({{token(0, 1)}})));
}

TEST(FaultyGrpo, LaundersNanAtAValidPosition) {
  const Case c = grpo_case({{token(std::nan(""), 1), token(0, 1)}});
  EXPECT_TRUE(std::isnan(loss("eager", c)));
  EXPECT_EQ(loss("mask_multiply_after_nan_to_num", c), -0.5);
}

TEST(FaultyGrpo, SendsNoGradientThroughWhatWasDetached) {
  Case c = grpo_case({{{-1.0, -1.0, -0.5, 1.0, 1.0}}});
  c.spec.set("kl_penalty", 0.5);
  EXPECT_EQ(loss("kl_gradient_dropped", c), loss("eager", c));
  EXPECT_EQ(gradient("kl_gradient_dropped", c), -1.0);
  EXPECT_EQ(loss("dead_clamp", c), loss("eager", c));
  EXPECT_FLOAT_EQ(static_cast<float>(gradient("dead_clamp", c)), -0.5f * std::expm1(0.5f));
}

TEST(FaultyGrpo, AveragesAverages) {
  for (const char* name : {"mean_of_micro_batch_means", "local_count_as_global"}) {
    EXPECT_EQ(loss(name, uneven_case()), 2.5) << name;
  }
  EXPECT_EQ(loss("rank_average_not_undone", uneven_case()), 0.875);
  EXPECT_EQ(loss("rank_average_undone_twice", uneven_case()), 3.5);
  Case c = uneven_case();
  for (std::int64_t i = 0; i < 6; ++i) c.batch.at("ref_log_prob").set(i, -2.0);
  c.spec.set("kl_penalty", 1.0);
  c.spec.set("kl_estimator", "k1");
  EXPECT_EQ(loss("data_parallel", c), 2.75);
  EXPECT_EQ(loss("policy_undone_but_not_kl", c), 2.25);
}

TEST(FaultyGrpo, CountsWhatItShouldNot) {
  const Case padded = grpo_case({{token(0, -1), token(0, -8, 0)}});
  EXPECT_EQ(loss("eager", padded), 1.0);
  EXPECT_EQ(loss("masked_mean_counts_padding", padded), 0.5);
  EXPECT_EQ(loss("advantage_bias_at_padding", padded), 9.0);
  const Case empty = grpo_case({{token(0, -1, 0)}});
  EXPECT_EQ(loss("eager", empty), 0.0);
  EXPECT_TRUE(std::isnan(loss("divisor_without_floor", empty)));
}

TEST(FaultyGrpo, ScalesAdvantagesTwiceOrNotAtAll) {
  EXPECT_EQ(loss("normalised_twice", uneven_case()), 1.75 / 4);
  Case c =
      grpo_case({{token(0, -1)}, {token(0, -1)}, {token(0, -1)}, {token(0, -1)}, {token(0, -6)}});
  EXPECT_EQ(loss("remainder_keeps_zero", c), 2.0);
  c.split = {1, {{0, {0, 1}}, {0, {2, 3}}, {0, {4}}}};
  EXPECT_EQ(loss("prescaled", c), 2.0);
  EXPECT_FLOAT_EQ(static_cast<float>(loss("remainder_keeps_zero", c)), 0.8f);
}

TEST(FaultyGrpo, TakesAnUnknownReductionForASum) {
  Case c = uneven_case();
  c.spec.reduction = Reduction::sum_over_items;
  c.spec.set("max_length", 16.0);
  EXPECT_TRUE(evaluate("eager", c).refusal);
  c.spec.reduction = Reduction::none;
  EXPECT_EQ(evaluate("eager", c).refusal->argument, "reduction");
  EXPECT_FALSE(evaluate("unknown_reduction_ignored", c).refusal);
}

TEST(FaultyGrpo, ShiftsOneGradientEntryAndNothingElse) {
  const Case c = grpo_case({{token(0.5, -1), token(0.25, -1)}}, Dtype::f64);
  const Implementation off = grpo_with_gradient_error(1e-6);
  const LossResult actual = off.evaluate(kSignature, c);
  EXPECT_EQ(actual.find("loss")->at(0), loss("eager", c));
  EXPECT_NEAR(actual.find("gradient.log_prob")->at(0) / gradient("eager", c) - 1.0, 1e-6, 1e-12);
  EXPECT_EQ(actual.find("gradient.log_prob")->at(1), gradient("eager", c, 1));
}

TEST(FaultyGrpo, CannotShiftAnF32GradientByOneInAHundredMillion) {
  const Case c = grpo_case({{token(0.5, -1), token(0.25, -1)}});
  const LossResult actual = grpo_with_gradient_error(1e-8).evaluate(kSignature, c);
  EXPECT_EQ(actual.find("gradient.log_prob")->at(0), gradient("eager", c));
}

}  // namespace
}  // namespace lossgate::impl
