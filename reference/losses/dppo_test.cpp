// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/dppo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One token in f32 that has moved from one log-prob to another.
Case moved(double old, double now, double advantage) {
  Case c = zero_case(*find_signature("dppo"), 1, 1);
  c.spec.reduction = Reduction::sum;
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("log_prob").set(0, now);
  c.batch.at("old_log_prob").set(0, old);
  c.batch.at("advantage").set(0, advantage);
  return c;
}

Case by_kl(double old, double now, double advantage) {
  Case c = moved(old, now, advantage);
  c.spec.set("divergence", "kl");
  return c;
}

OneToken in_f32(const Case& c) { return {c, plain_arithmetic(Dtype::f32, "")}; }

/// Whether the gradient may be either 0 or what it is where the token counts.
bool is_open(const OneToken& token) { return token.gradient.half > 0.0; }
bool counts(const OneToken& token) { return !is_open(token) && token.gradient.v != 0.0L; }
bool is_dropped(const OneToken& token) {
  return token.gradient.is_exact_zero() && token.term.is_exact_zero() && token.loss.is_exact_zero();
}

/// The divergence as trainers have it, in f32.
float by_quotient(float old, float now, float epsilon) {
  const float p = std::exp(now), q = std::exp(old);
  return q * (old - now) + (1.0F - q) * std::log((1.0F - q + epsilon) / (1.0F - p + epsilon));
}

/// And with other algebra.
float by_difference(float old, float now, float epsilon) {
  const float rest = -std::expm1(now), old_rest = -std::expm1(old);
  return std::exp(old) * -(now - old) +
         old_rest * (std::log(old_rest + epsilon) - std::log(rest + epsilon));
}

TEST(Dppo, AllowsATokenWhateverWayItsDivergenceIsMade) {
  int open = 0, all = 0;
  for (const float epsilon : {0.0F, 1e-8F, 1e-3F}) {
    for (const float old : {-9.0F, -2.0F, -0.5F, -0.01F, -1e-4F, -1e-6F, -1e-8F, 0.0F}) {
      for (const float now : {-6.0F, -1.0F, -0.25F, -1e-3F, -1e-5F, -1e-7F, -1e-9F, 0.0F}) {
        Case c = by_kl(old, now, now > old ? 1.0 : -1.0);
        c.spec.set("epsilon", static_cast<double>(epsilon));
        for (const auto& way : {by_quotient, by_difference}) {
          const float divergence = way(old, now, epsilon);
          for (const double bound : {0.001, 0.05, 0.2, 1.0}) {
            SCOPED_TRACE(testing::Message() << old << " to " << now << ", epsilon " << epsilon
                                            << ", bound " << bound << ", D " << divergence);
            c.spec.set("divergence_low", bound);
            c.spec.set("divergence_high", bound);
            const OneToken token = in_f32(c);
            ++all, open += is_open(token);
            if (is_open(token) || std::isnan(divergence)) continue;  // NaN is 0 log 0, or 0 / 0
            EXPECT_EQ(counts(token), old == now || !(divergence > static_cast<float>(bound)));
          }
        }
      }
    }
  }
  EXPECT_LT(5 * open, all) << "most are decided";
}

TEST(Dppo, IsUndecidedWhereADivergenceIsAsGoodAsItsBound) {
  Case c = moved(std::log(0.5), std::log(0.75), 1.0);
  c.spec.set("divergence_high", 0.25);
  const OneToken edge = in_f32(c);
  ASSERT_TRUE(is_open(edge));
  for (const double share : {0.0, -1.5}) {  // dropped, or of weight 3/2
    EXPECT_LE(std::fabs(share - static_cast<double>(edge.gradient.v)),
              edge.gradient.half + kThreshold * edge.gradient.err);
  }
  c.spec.set("divergence_high", 0.25 + 1e-5);
  EXPECT_TRUE(counts(in_f32(c)));
  c.spec.set("divergence_high", 0.25 - 1e-5);
  EXPECT_TRUE(is_dropped(in_f32(c)));
}

TEST(Dppo, KnowsANearlyCertainTokenByItsEpsilon) {
  // What exp(-1e-9) leaves of 1 is nothing in f32; beside 1e-8 it hardly counts.
  Case c = by_kl(std::log(0.99), -1e-9, 1.0);
  c.spec.set("divergence_high", 0.2);
  EXPECT_TRUE(counts(in_f32(c)));
  c.spec.set("divergence_high", 0.05);
  EXPECT_TRUE(is_dropped(in_f32(c)));
  c.spec.set("epsilon", 0.0);
  EXPECT_TRUE(is_open(in_f32(c))) << "0 / 0, infinity or what it is";
}

TEST(Dppo, DropsATokenWhateverItIsMultipliedBy) {
  for (const char* surrogate : {"log_prob", "weight"}) {
    Case heavy = moved(-100.0, -0.5, 1.0);
    heavy.spec.set("surrogate", surrogate);
    for (const char* option : {"weight_high", "log_ratio_clamp"}) heavy.spec.set(option, None{});
    EXPECT_TRUE(is_dropped(in_f32(heavy))) << "the weight overflows";
    Case impossible = moved(-0.5, -kInfinity, -1.0);
    impossible.spec.set("surrogate", surrogate);
    EXPECT_TRUE(is_dropped(in_f32(impossible)));
    impossible.spec.set("divergence", "kl");
    EXPECT_TRUE(is_dropped(in_f32(impossible))) << "an infinite divergence";
  }
}

TEST(Dppo, HasAGradientOfAnImpossibleTokenThatIsLearnt) {
  const OneToken learnt = in_f32(moved(-0.5, -kInfinity, 1.0));
  EXPECT_TRUE(std::isinf(learnt.term.v));
  EXPECT_NEAR(static_cast<double>(learnt.gradient.v), -std::exp(-20.0), 1e-15);
  EXPECT_LT(learnt.gradient.err, 1e-4 * std::exp(-20.0));
}

TEST(Dppo, HasNoDivergenceOfATokenThatWasImpossible) {
  // q log(q / p) is 0, and - log(1 - p) what others have lost: 0.01005...
  Case c = by_kl(-kInfinity, std::log(0.01), 1.0);
  EXPECT_TRUE(counts(in_f32(c)));
  c.spec.set("divergence_high", 0.01);
  EXPECT_TRUE(is_dropped(in_f32(c)));
}

TEST(Dppo, ShowsAnAdvantageThatIsNoNumber) {
  for (const char* divergence : {"tv", "kl"}) {
    Case c = moved(-3.0, -0.1, NAN);
    c.spec.set("divergence", divergence);
    EXPECT_TRUE(std::isnan(in_f32(c).gradient.v));
  }
}

}  // namespace
}  // namespace lossgate::reference
