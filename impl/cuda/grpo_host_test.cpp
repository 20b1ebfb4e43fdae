// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/grpo_host.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "impl/given_grpo_case.h"

namespace lossgate::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LossResult evaluate(const Case& c) { return grpo_host().evaluate(grpo_signature_for_tests(), c); }

double entry(const LossResult& result, std::string_view output, std::int64_t at = 0) {
  return result.find(output)->at(at);
}

/// One sequence whose KL term is off.
Case policy_case(double log_ratio, double advantage) {
  return grpo_case({{{-1.0 + log_ratio, -1.0, -1.0, advantage, 1.0}}}, Dtype::f64);
}

TEST(GrpoHost, GivesTheValuesThatAreWorkedByHand) {
  EXPECT_DOUBLE_EQ(entry(evaluate(policy_case(0.1, 2.0)), "loss"), -2.0 * std::exp(0.1));
  EXPECT_DOUBLE_EQ(entry(evaluate(policy_case(0.1, 2.0)), "gradient.log_prob"),
                   -2.0 * std::exp(0.1));
  EXPECT_EQ(entry(evaluate(policy_case(0.5, 2.0)), "loss"), -2.4);
  EXPECT_EQ(entry(evaluate(policy_case(0.5, 2.0)), "gradient.log_prob"), 0.0);
  EXPECT_EQ(entry(evaluate(policy_case(-0.5, -2.0)), "loss"), 1.6);
  Case c = grpo_case({{{-1.0, -1.0, -0.5, 1.0, 1.0}}}, Dtype::f64);
  c.spec.set("kl_penalty", 0.25);
  EXPECT_DOUBLE_EQ(entry(evaluate(c), "loss"), -1.0 + 0.25 * (std::expm1(0.5) - 0.5));
  EXPECT_DOUBLE_EQ(entry(evaluate(c), "gradient.log_prob"), -1.0 - 0.25 * std::expm1(0.5));
}

TEST(GrpoHost, AveragesOverValidTokensOrOverSequences) {
  const GrpoEntry one{-1.0, -1.0, -1.0, -1.0, 1.0}, four{-1.0, -1.0, -1.0, -4.0, 1.0},
      padding{0.0, 0.0, 0.0, -9.0, 0.0};
  Case c = grpo_case({{one, one, four}, {four, padding, padding}, {padding, padding, padding}});
  EXPECT_EQ(entry(evaluate(c), "loss"), 2.5);
  EXPECT_EQ(entry(evaluate(c), "gradient.log_prob", 2), 1.0);
  c.spec.reduction = Reduction::sequence_mean;
  EXPECT_EQ(entry(evaluate(c), "loss"), 3.0);
  c.spec.reduction = Reduction::seq_mean_token_sum_norm;
  EXPECT_EQ(entry(evaluate(c), "loss"), 10.0 / 32.0);
  c.spec.reduction = Reduction::sum;
  EXPECT_EQ(entry(evaluate(c), "loss"), 10.0);
}

TEST(GrpoHost, NeverReadsMaskedPositions) {
  const double nan = std::nan("");
  const Case c =
      grpo_case({{{-1.0, -1.0, -1.0, 1.0, 1.0}, {nan, kInfinity, -kInfinity, nan, 0.0}}});
  const LossResult result = evaluate(c);
  EXPECT_EQ(entry(result, "loss"), -1.0);
  EXPECT_EQ(entry(result, "per_token", 1), 0.0);
  EXPECT_EQ(entry(result, "gradient.log_prob", 1), 0.0);
}

TEST(GrpoHost, StaysFiniteWhereTheClipHasDecided) {
  for (const char* level : {"token", "sequence"}) {
    for (double advantage : {1.0, 0.0}) {
      Case c = policy_case(1e4, advantage);
      c.spec.set("log_ratio_clamp", None{});
      c.spec.set("level", level);
      EXPECT_EQ(entry(evaluate(c), "loss"), advantage == 0.0 ? 0.0 : -1.2);
      EXPECT_EQ(entry(evaluate(c), "gradient.log_prob"), 0.0);
    }
  }
}

TEST(GrpoHost, LetsNanAtAValidPositionShow) {
  for (std::size_t field : {0u, 1u, 3u}) {
    for (double advantage : {1.0, 0.0}) {
      Case c = policy_case(0.0, advantage);
      c.batch.fields[field].second.set(0, std::nan(""));
      const LossResult result = evaluate(c);
      EXPECT_FALSE(result.refusal);
      EXPECT_TRUE(std::isnan(entry(result, "loss"))) << c.batch.fields[field].first;
    }
  }
}

TEST(GrpoHost, TakesTheMeanLogRatioAtSequenceLevel) {
  Case c = grpo_case({{{-0.8, -1.0, -1.0, 1.0, 1.0}, {-1.1, -1.0, -1.0, 3.0, 1.0}}}, Dtype::f64);
  c.spec.set("level", "sequence");
  const double weight = std::exp((-0.8 + 1.0 + -1.1 + 1.0) / 2.0);
  EXPECT_DOUBLE_EQ(entry(evaluate(c), "loss"), -2.0 * weight);
  EXPECT_DOUBLE_EQ(entry(evaluate(c), "gradient.log_prob", 0), -weight);
  EXPECT_DOUBLE_EQ(entry(evaluate(c), "gradient.log_prob", 1), -weight);
}

TEST(GrpoHost, WidensHalfPrecisionBeforeTheFirstSubtraction) {
  Case c = grpo_case({{{-0.5, -12.5, -0.5, -1.0, 1.0}}}, Dtype::f16);
  EXPECT_FLOAT_EQ(static_cast<float>(entry(evaluate(c), "loss")), std::exp(12.0f));  // not inf
  EXPECT_EQ(evaluate(c).find("gradient.log_prob")->dtype, Dtype::f16);
}

TEST(GrpoHost, ScalesTheGradientButNotTheLossByTheUpstreamGradient) {
  Case c = policy_case(0.0, 1.0);
  c.upstream = -0.5;
  EXPECT_EQ(entry(evaluate(c), "loss"), -1.0);
  EXPECT_EQ(entry(evaluate(c), "gradient.log_prob"), 0.5);
}

TEST(GrpoHost, CancelsTheLargestAdvantagesOfASequence) {
  const double most = std::numeric_limits<float>::max();
  const auto entry_of = [](double advantage) {
    return GrpoEntry{-1.0, -1.0, -1.0, advantage, 1.0};
  };
  Case c = grpo_case({{entry_of(most), entry_of(most), entry_of(-most), entry_of(-most)}});
  c.spec.set("level", "sequence");
  EXPECT_EQ(entry(evaluate(c), "loss"), 0.0);
  EXPECT_EQ(entry(evaluate(c), "gradient.log_prob"), 0.0);
}

TEST(GrpoHost, IsZeroForAnEmptyBatch) {
  const Case c = grpo_case({{{-1.0, -1.0, -1.0, 1.0, 0.0}}});
  EXPECT_EQ(entry(evaluate(c), "loss"), 0.0);
  EXPECT_EQ(entry(evaluate(c), "gradient.log_prob"), 0.0);
}

}  // namespace
}  // namespace lossgate::impl
