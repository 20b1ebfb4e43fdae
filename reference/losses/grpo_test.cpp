// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/grpo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

TEST(Grpo, LetsAWeightRoundATinyAdvantageBeforeAllElseComes) {
  const Loss& loss = *find_loss("grpo");
  Case c = zero_case(loss.signature, 1, 1);
  c.spec.reduction = Reduction::seq_mean_token_sum_norm;
  c.spec.set("kl_penalty", 0.0);
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("old_log_prob").set(0, -2.0);
  // 43 times the smallest number, of which a sixteenth is rounded to 3 times it.
  const float advantage = -0x2bp-149f;
  c.batch.at("advantage").set(0, advantage);
  for (const double upstream : {1.0, 512.0, 65536.0}) {
    c.upstream = upstream;
    const OneToken kept(c, plain_arithmetic(Dtype::f32, ""));
    const float weighted = advantage * 0.0625f;
    const double actual = -weighted * std::exp(2.0) * upstream;
    const double error = std::fabs(actual - static_cast<double>(kept.gradient.v));
    EXPECT_GT(error, 0.1 * actual);
    EXPECT_LE(error, kThreshold * kept.gradient.err) << upstream;
  }
}

TEST(Grpo, MayTakeASequencesWeightFromTheDifferenceOfItsMeansWhereNoFormIsDeclared) {
  constexpr std::int64_t kTokens = 5;
  Case c = zero_case(*find_signature("grpo"), 1, kTokens);
  c.spec.reduction = Reduction::sum;
  c.spec.set("level", std::string("sequence"));
  c.spec.set("kl_penalty", 0.0);
  float current = 0.0F, old = 0.0F;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const float own = -108.0F - 0.37F * static_cast<float>(t), before = own * (1.0F + 0x1p-20F);
    c.batch.at("mask").set(t, 1.0);
    c.batch.at("advantage").set(t, 1.0);
    c.batch.at("log_prob").set(t, own);
    c.batch.at("old_log_prob").set(t, before);
    current += own;
    old += before;
  }
  const double actual = -std::exp(current / 5.0F - old / 5.0F);
  const Tracked term = OneToken(c, plain_arithmetic(Dtype::f32, "")).term;
  const double error = std::fabs(actual - static_cast<double>(term.v));
  EXPECT_LE(error, kThreshold * term.err);
  EXPECT_GT(error, kThreshold * OneToken(c, plain_arithmetic(Dtype::f32, kK3Forms[0])).term.err);
}

TEST(Grpo, MayMakeNaNOfAZeroAdvantageWhereBothOfASequencesSumsOverflow) {
  constexpr std::int64_t kTokens = 5;
  for (const double size : {1e37, 1e38}) {
    Case c = zero_case(*find_signature("grpo"), 1, kTokens);
    c.spec.reduction = Reduction::sum;
    c.spec.set("level", std::string("sequence"));
    c.spec.set("kl_penalty", 0.0);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      c.batch.at("mask").set(t, 1.0);
      c.batch.at("log_prob").set(t, -size);
      c.batch.at("old_log_prob").set(t, -size);
    }
    const OneToken any(c, plain_arithmetic(Dtype::f32, ""));
    const bool overflows = static_cast<double>(kTokens) * size > max_finite(Dtype::f32);
    EXPECT_EQ(any.term.peak == HUGE_VAL, overflows) << size;
    EXPECT_EQ(any.gradient.peak == HUGE_VAL, overflows) << size;
    // One sum of differences has nothing that overflows.
    const OneToken declared(c, plain_arithmetic(Dtype::f32, kK3Forms[0]));
    EXPECT_TRUE(declared.term.is_exact_zero()) << size;
    EXPECT_TRUE(declared.gradient.is_exact_zero()) << size;
    // Beside a sum that fits an infinity is a weight without a number, or of 0.
    for (std::int64_t t = 0; t < kTokens; ++t) c.batch.at("old_log_prob").set(t, 0.0);
    EXPECT_TRUE(OneToken(c, plain_arithmetic(Dtype::f32, "")).term.is_exact_zero()) << size;
  }
}

TEST(Grpo, MayAddUpPolicyAndPenaltyApartWhereTheyNearlyCancelInEachTerm) {
  constexpr std::int64_t kTokens = 1024;
  Case c = zero_case(*find_signature("grpo"), 1, kTokens);
  c.spec.reduction = Reduction::token_mean;
  const float advantage = 0.4F, coefficient = 0.04F, most = 10.0F;
  c.spec.set("kl_penalty", 0.04);
  c.spec.set("kl_output_clamp", 10.0);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    c.batch.at("mask").set(t, 1.0);
    c.batch.at("advantage").set(t, advantage);
    c.batch.at("ref_log_prob").set(t, 3.0);
  }
  float policy = 0.0F, penalty = 0.0F;
  for (std::int64_t t = 0; t < kTokens; ++t) policy -= advantage, penalty += most;
  const double actual = policy / kTokens + coefficient * (penalty / kTokens);
  Arithmetic sequential = plain_arithmetic(Dtype::f32, "");
  sequential.sum.order = SumOrder::sequential;
  const Tracked loss = OneToken(c, sequential).loss;
  const double error = std::fabs(actual - static_cast<double>(loss.v));
  EXPECT_GT(error, 64.0 * unit_roundoff(Dtype::f32) * advantage) << "of one term's rounding";
  EXPECT_LE(error, kThreshold * loss.err);
}

TEST(Grpo, MayMakeABoundOfARoundedClipDistance) {
  for (const double clip : {0.8838, 0.9}) {
    Case c = zero_case(*find_signature("grpo"), 1, 1);
    c.spec.reduction = Reduction::sum;
    c.spec.set("kl_penalty", 0.0);
    c.spec.set("clip_low", clip);
    c.batch.at("mask").set(0, 1.0);
    c.batch.at("advantage").set(0, -1.0);
    c.batch.at("old_log_prob").set(0, 8.0);
    const float actual = 1.0F - static_cast<float>(clip);
    const Tracked term = OneToken(c, plain_arithmetic(Dtype::f32, kK3Forms[0])).term;
    EXPECT_LE(std::fabs(actual - static_cast<double>(term.v)), kThreshold * term.err) << clip;
  }
}

}  // namespace
}  // namespace lossgate::reference
