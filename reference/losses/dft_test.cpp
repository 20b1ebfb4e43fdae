// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/dft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

/// One label whose logit is so far from the only other one.
Case at_gap(double gap) {
  Case c = zero_case(*find_signature("dft"), 1, 1, 2);
  c.spec.reduction = Reduction::sum;
  c.batch.at("logits").set(1, gap);
  c.batch.at("label").set(0, 1);
  return c;
}

OneToken in_f32(const Case& c, const std::string& form = kShiftedForm) {
  return {c, plain_arithmetic(Dtype::f32, form)};
}

Arithmetic stores(Stage stage, Dtype dtype) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, kShiftedForm);
  arithmetic.stage(stage) = {
      .roundoff = unit_roundoff(dtype), .eta = min_subnormal(dtype), .largest = max_finite(dtype)};
  return arithmetic;
}

bool within(double found, const Tracked& x) {
  return std::fabs(found - static_cast<double>(x.v)) <= kThreshold * x.err;
}

double relative_error(const Tracked& x) { return x.err / std::fabs(static_cast<double>(x.v)); }

TEST(Dft, KeepsItsDigitsAsLongAsTheProbabilityHasAny) {
  for (const std::string form : {kShiftedForm, kLogSumExpForm}) {
    for (const double gap : {-0.5, -5.0, -80.0}) {
      const OneToken answer = in_f32(at_gap(gap), form);
      // An error of the log-prob is one of the probability, as often as that is large.
      EXPECT_LT(relative_error(answer.term), 1e-6 * (1.0 - gap)) << form << " " << gap;
      EXPECT_LT(relative_error(answer.gradient), 1e-6 * (1.0 - gap)) << form << " " << gap;
    }
  }
}

TEST(Dft, HasATermThatFadesWithItsProbabilityAndStaysANumber) {
  for (const std::string form : {kShiftedForm, kLogSumExpForm, ""}) {
    for (const double gap : {-100.0, -104.0, -200.0, -3e4, -1e30}) {
      const OneToken answer = in_f32(at_gap(gap), form);
      for (const Tracked& x : {answer.loss, answer.term, answer.gradient}) {
        EXPECT_LE(x.peak, max_finite(Dtype::f32)) << form << " " << gap;
        // What an exponential that underflows loses, times the log-prob; where no form is declared,
        // a share of which the reciprocal overflows is lost.
        const double lost = 8.0 * min_subnormal(Dtype::f32) + 1.1 * std::exp(gap);
        EXPECT_LT(x.err, -gap * lost) << form << " " << gap;
        EXPECT_TRUE(within(0.0, x) || gap == -100.0) << form << " " << gap;
      }
    }
  }
}

TEST(Dft, OfAnImpossibleLabelIsExactlyZero) {
  for (const std::string form : {kShiftedForm, kLogSumExpForm, ""}) {
    const Case c = at_gap(-std::numeric_limits<double>::infinity());
    for (const Stage stage : {Stage::per_token, Stage::log_prob, Stage::loss}) {
      Arithmetic arithmetic = stores(stage, Dtype::f16);
      arithmetic.form = form;
      const OneToken answer(c, arithmetic);
      for (const Tracked& x : {answer.loss, answer.term, answer.gradient}) {
        EXPECT_EQ(x.v, 0.0L) << form;
        EXPECT_EQ(x.err, 0.0) << form;
        EXPECT_LE(x.peak, max_finite(Dtype::f32)) << form << ": a number is asked";
      }
    }
  }
}

TEST(Dft, ThatOverflowsOnTheWayNeedBeNoNumber) {
  // Of logits +-3e38 the difference is beyond f32.
  Case c = at_gap(-3e38);
  EXPECT_LE(in_f32(c).term.peak, max_finite(Dtype::f32));
  c.batch.at("logits").set(0, 3e38);
  EXPECT_GT(in_f32(c).term.peak, max_finite(Dtype::f32)) << "0 times -infinity";
}

TEST(Dft, HasNoGradientThroughItsProbability) {
  for (const double gap : {-2.0, 0.5, 3.0}) {
    const Tracked g = in_f32(at_gap(gap), "").gradient;
    const double p = 1.0 / (1.0 + std::exp(-gap)), slope = p * (p - 1.0);
    EXPECT_TRUE(within(slope, g)) << gap;
    EXPECT_FALSE(within(slope * (1.0 + std::log(p)), g)) << gap;
  }
}

TEST(Dft, HasAProbabilityOfTheFormatThatLogProbsAreStoredIn) {
  // One in 1 + e^-6.5: its log-prob, -0.0015, keeps eight bits in bf16, and it is 1 there.
  const Case c = at_gap(6.5);
  const double p = 1.0 / (1.0 + std::exp(-6.5)), cost = -std::log(p);
  const Arithmetic stored = stores(Stage::log_prob, Dtype::bf16);
  const Tracked g = OneToken(c, stored).gradient;
  EXPECT_TRUE(within(cost, OneToken(c, stored).term)) << "1 for p";
  EXPECT_TRUE(within(p - 1.0, g));
  EXPECT_FALSE(within(cost, in_f32(c).term));
  EXPECT_FALSE(within(0.98 * cost, OneToken(c, stored).term)) << "no format is that narrow";
}

TEST(Dft, MayStoreItsCostBeforeItsProbabilityComes) {
  const Case c = at_gap(-5.0);
  const double log_p = -std::log1p(std::exp(5.0)), p = std::exp(log_p);
  const double found = p * round_to(Dtype::bf16, -log_p);
  ASSERT_GT(std::fabs(found + p * log_p), 1e-4 * found);
  EXPECT_TRUE(within(found, OneToken(c, stores(Stage::per_token, Dtype::bf16)).term));
  EXPECT_FALSE(within(found, in_f32(c).term));
  // A cost of 70,000 is infinite in f16, and 0 times that is no number.
  const Case far = at_gap(-70000.0);
  EXPECT_GT(OneToken(far, stores(Stage::per_token, Dtype::f16)).term.peak, max_finite(Dtype::f32));
  EXPECT_LE(OneToken(far, stores(Stage::per_token, Dtype::bf16)).term.peak, max_finite(Dtype::f32));
}

}  // namespace
}  // namespace lossgate::reference
