// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/dro.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

/// Numbers of one token whose old log-prob is 0 unless said otherwise.
struct Numbers {
  double log_prob, advantage, weight = 1.0, old_log_prob = 0.0, beta = 0.05;
};

Case case_of(const Numbers& x) {
  Case c = zero_case(*find_signature("dro"), 1, 1);
  c.spec.reduction = Reduction::sum;
  c.spec.set("beta", x.beta);
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("log_prob").set(0, x.log_prob);
  c.batch.at("old_log_prob").set(0, x.old_log_prob);
  c.batch.at("advantage").set(0, x.advantage);
  c.batch.at("importance_weight").set(0, x.weight);
  return c;
}

OneToken in_f32(const Numbers& x) { return {case_of(x), plain_arithmetic(Dtype::f32, "")}; }

bool fits(const Tracked& x) { return x.peak <= max_finite(Dtype::f32); }

TEST(Dro, FitsWhereHalfOfBetaTimesASquareDoes) {
  EXPECT_TRUE(fits(in_f32({-1e20, 1.0}).term)) << "2.5e38, the square is 1e40";
  EXPECT_FALSE(fits(in_f32({-1.2e20, 1.0}).term)) << "3.6e38";
  EXPECT_FALSE(fits(in_f32({-2e19, 1.0, 1.0, 0.0, 10.0}).term)) << "2e39";
  EXPECT_TRUE(fits(in_f32({-1.2e20, 1.0}).gradient)) << "the slope is not squared";
}

TEST(Dro, OverflowsBeforeASmallWeightComes) {
  const Tracked term = in_f32({-1.2e20, 1.0, 0.125}).term;
  EXPECT_LT(std::fabs(static_cast<double>(term.v)), max_finite(Dtype::f32));
  EXPECT_FALSE(fits(term));
}

TEST(Dro, IsSilentUnderAWeightOfZero) {
  for (const double log_prob : {-1.0, -1e30, -HUGE_VAL}) {
    const OneToken token = in_f32({log_prob, 1.0, 0.0});
    EXPECT_TRUE(token.term.is_exact_zero()) << log_prob;
    EXPECT_TRUE(token.gradient.is_exact_zero()) << log_prob;
  }
}

TEST(Dro, MayHaveNoNumberWhereATokenIsImpossibleInBothPolicies) {
  const OneToken silent = in_f32({-HUGE_VAL, 1.0, 0.0, -HUGE_VAL});
  EXPECT_EQ(silent.term.v, 0.0L);
  EXPECT_TRUE(tracking::undefined(silent.term));
  EXPECT_TRUE(std::isnan(in_f32({-HUGE_VAL, 1.0, 1.0, -HUGE_VAL}).gradient.v));
}

TEST(Dro, LetsTheWeightMeetTheAdvantageFirst) {
  // An eighth of four times f32's least number is no number of it.
  const Numbers x = {-1024.0, 4 * min_subnormal(Dtype::f32), 0.125, -1024.0};
  EXPECT_GE(in_f32(x).term.err, 1024.0 * min_subnormal(Dtype::f32));
}

TEST(Dro, RoundsAtTheSizeOfEitherPartWhereTheseCancel) {
  // 0.025 16^2 is 6.4, as is 0.4 16; the slope 0.05 16 is 0.8.
  const double u = unit_roundoff(Dtype::f32);
  const OneToken term = in_f32({-16.0, -0.4});
  EXPECT_LT(std::fabs(static_cast<double>(term.term.v)), 1e-6);
  EXPECT_GE(term.term.err, 2 * 6.4 * u);
  const OneToken slope = in_f32({-16.0, -0.8});
  EXPECT_LT(std::fabs(static_cast<double>(slope.gradient.v)), 1e-6);
  EXPECT_GE(slope.gradient.err, 2 * 0.8 * u);
}

TEST(Dro, MayAddUpBothPartsApart) {
  constexpr std::int64_t kTokens = 64;
  Case c = zero_case(*find_signature("dro"), 1, kTokens);
  c.spec.reduction = Reduction::sum;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    c.batch.at("mask").set(t, 1.0);
    c.batch.at("importance_weight").set(t, 1.0);
    c.batch.at("log_prob").set(t, -16.0);
    c.batch.at("advantage").set(t, -0.4);
  }
  const OneToken all(c, plain_arithmetic(Dtype::f32, ""));
  EXPECT_GE(all.loss.err, 12 * kTokens * 6.4 * unit_roundoff(Dtype::f32)) << "of 6 additions each";
}

TEST(Dro, HearsOfAStoredLogRatioThoughItsSlopeCancels) {
  Arithmetic coarse = plain_arithmetic(Dtype::f32, "");
  coarse.stage(Stage::log_prob) = {unit_roundoff(Dtype::bf16), min_subnormal(Dtype::bf16)};
  const OneToken token(case_of({-16.0, -0.8}), coarse);
  EXPECT_GE(token.gradient.err, 1.98 * 0.8 * unit_roundoff(Dtype::bf16))
      << "d, and what comes back";
}

TEST(Dro, MayStoreTheSquareBeforeBetaComes) {
  Arithmetic stored = plain_arithmetic(Dtype::f32, "");
  stored.stage(Stage::per_token) = {.roundoff = unit_roundoff(Dtype::f16),
                                    .eta = min_subnormal(Dtype::f16),
                                    .largest = max_finite(Dtype::f16)};
  EXPECT_FALSE(fits(OneToken(case_of({-400.0, 0.0}), stored).term)) << "80000, and 4000 behind it";
  EXPECT_TRUE(fits(OneToken(case_of({-300.0, 0.0}), stored).term)) << "45000";
}

}  // namespace
}  // namespace lossgate::reference
