// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/vespo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

/// One token of log-prob -1 and advantage 1 at a log-ratio, which is that of its sequence.
Case at_log_ratio(double log_ratio) {
  Case c = zero_case(*find_signature("vespo"), 1, 1);
  c.spec.reduction = Reduction::sum;
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("advantage").set(0, 1.0);
  c.batch.at("log_prob").set(0, -1.0);
  c.batch.at("old_log_prob").set(0, -1.0 - log_ratio);
  return c;
}

constexpr const char *kExponent = "exp(lambda + k log w - lambda w)", *kAny = "";

OneToken in_f32(const Case& c, const char* form = kExponent) {
  return {c, plain_arithmetic(Dtype::f32, form)};
}

double size_of(const Tracked& x) { return std::fabs(static_cast<double>(x.v)); }

/// phi as trainers have it, in f32.
float by_exponent(float log_ratio, float k, float lambda) {
  return std::exp(lambda + k * log_ratio - lambda * std::exp(log_ratio));
}

/// With the logarithm of a w that was made first, and as it is written on paper.
float by_logarithm(float log_ratio, float k, float lambda) {
  const float w = std::exp(log_ratio);
  return std::exp(lambda * (1.0F - w) + k * std::log(w));
}
float by_product(float log_ratio, float k, float lambda) {
  const float w = std::exp(log_ratio);
  return std::pow(w, k) * std::exp(lambda - lambda * w);
}
float by_three_factors(float log_ratio, float k, float lambda) {
  const float w = std::exp(log_ratio);
  return std::exp(lambda) * std::pow(w, k) * std::exp(-lambda * w);
}

TEST(Vespo, HoldsWhateverWayItsWeightIsMadeIn) {
  const double u = unit_roundoff(Dtype::f32);
  // 3.544921875, lambda = 3: exp(-103.9) rounds to the least number, twice what it is.
  for (const float log_ratio :
       {-15.0F, -1.5F, -1e-3F, 1e-6F, 0.25F, 1.0F, 2.5F, 3.5F, 3.544921875F, 4.0F}) {
    Case c = at_log_ratio(log_ratio);
    const auto given = static_cast<float>(c.batch.at("log_prob").at(0)) -
                       static_cast<float>(c.batch.at("old_log_prob").at(0));
    for (const float k : {0.0F, 2.0F, 5.0F}) {
      for (const float lambda : {0.125F, 3.0F}) {
        SCOPED_TRACE(testing::Message() << log_ratio << ", k " << k << ", lambda " << lambda);
        c.spec.set("k_positive", k);
        c.spec.set("lambda_positive", lambda);
        const auto expect_held = [&](float phi, const Tracked& gradient) {
          const double off = std::fabs(phi + static_cast<double>(gradient.v));
          EXPECT_LE(off, kThreshold * gradient.err);
        };
        const Tracked gradient = in_f32(c).gradient, any = in_f32(c, kAny).gradient;
        expect_held(by_exponent(given, k, lambda), gradient);
        for (const auto& way : {by_exponent, by_logarithm, by_product, by_three_factors}) {
          expect_held(way(given, k, lambda), any);
        }
        // Each of its exponent's terms rounds at its own size.
        const double terms = k * std::fabs(given) + lambda * (1.0 + std::exp(given));
        EXPECT_LT(gradient.err, 8.0 * u * (2.0 + terms) * size_of(gradient) + 1e-43);
      }
    }
  }
}

TEST(Vespo, LosesALogarithmThatIsMadeAgainWhereNoFormIsDeclared) {
  Case c = at_log_ratio(0.0);
  c.batch.at("log_prob").set(0, 0.0);
  c.batch.at("old_log_prob").set(0, -1e-6);
  for (const auto& [option, value] : {std::pair("k_positive", 5.0), {"lambda_positive", 0.125}}) {
    c.spec.set(option, value);
  }
  const double u = unit_roundoff(Dtype::f32);
  EXPECT_LT(in_f32(c).gradient.err, 4.0 * u);
  EXPECT_GT(in_f32(c, kAny).gradient.err, 5.0 * u) << "log(exp(x)) is off by a rounding of 1";
}

TEST(Vespo, IsChargedAnErrorOfTheLogRatioAsOftenAsItComesBack) {
  Arithmetic coarse = plain_arithmetic(Dtype::f32, kExponent);
  coarse.stage(Stage::log_prob) = {unit_roundoff(Dtype::bf16), min_subnormal(Dtype::bf16)};
  const double u = unit_roundoff(Dtype::bf16);
  const Tracked gradient = OneToken(at_log_ratio(1.0), coarse).gradient;
  const double grown = (2.0 + 3.0 * std::exp(1.0)) * u * size_of(gradient);
  EXPECT_GT(gradient.err, 0.99 * grown);
  EXPECT_LT(gradient.err, 1.3 * grown);
}

TEST(Vespo, LeavesNothingFarAboveOneHoweverLargeItsExponentIs) {
  for (const double log_ratio : {6.0, 15.0, 500.0}) {
    const OneToken far = in_f32(at_log_ratio(log_ratio));
    for (const Tracked& x : {far.loss, far.term, far.gradient}) {
      EXPECT_LT(size_of(x) + x.err, 1e-43) << log_ratio;
      EXPECT_LT(x.peak, max_finite(Dtype::f32)) << log_ratio << ": finite is demanded";
    }
  }
}

TEST(Vespo, MayBeNoNumberWhereAFactorOverflowsByItselfWhateverMeetsIt) {
  // e^100 beside exp(-3 e^20) is infinity times 0, and so is that times an advantage of 0.
  Case c = at_log_ratio(20.0);
  c.spec.set("k_positive", 5.0);
  c.batch.at("advantage").set(0, 0.0);
  for (const char* form : {"w^k exp(lambda - lambda w)", kAny}) {
    const OneToken apart = in_f32(c, form);
    for (const Tracked& x : {apart.loss, apart.term, apart.gradient}) {
      EXPECT_GT(x.peak, max_finite(Dtype::f32)) << form;
    }
  }
  EXPECT_LT(in_f32(c).loss.peak, max_finite(Dtype::f32)) << "where logarithms are added";
}

TEST(Vespo, HasAGradientOfATokenThatIsRuledOut) {
  Case c = at_log_ratio(0.0);
  c.batch.at("log_prob").set(0, -std::numeric_limits<double>::infinity());
  const OneToken impossible = in_f32(c);
  EXPECT_TRUE(std::isinf(impossible.term.v));
  const double phi = 1e-16 * std::exp(3.0 - 3e-8);
  EXPECT_NEAR(static_cast<double>(impossible.gradient.v), -phi, 1e-12 * phi);
  EXPECT_LT(impossible.gradient.err, 1e-4 * phi);
}

TEST(Vespo, MayTakeTheDifferenceOfTwoSumsWhereNothingIsBoundedBefore) {
  Case two = zero_case(*find_signature("vespo"), 1, 2);
  two.spec.reduction = Reduction::sum;
  for (std::int64_t t = 0; t < 2; ++t) {
    two.batch.at("mask").set(t, 1.0);
    two.batch.at("advantage").set(t, 1.0);
    for (const char* field : {"log_prob", "old_log_prob"}) two.batch.at(field).set(t, -1000.3);
  }
  const double u = unit_roundoff(Dtype::f32);
  EXPECT_LT(in_f32(two, kAny).gradient.err, 100.0 * u) << "clamped one by one";
  two.spec.set("log_ratio_clamp", None{});
  EXPECT_LT(in_f32(two).gradient.err, 100.0 * u);
  EXPECT_GT(in_f32(two, kAny).gradient.err, 1000.0 * u);
}

}  // namespace
}  // namespace lossgate::reference
