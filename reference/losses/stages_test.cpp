// SPDX-License-Identifier: Apache-2.0
// What a formula allows an implementation that stores parts of it in a format of their own.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

Arithmetic stores(Stage stage, Dtype dtype) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  arithmetic.stage(stage) = {
      .roundoff = unit_roundoff(dtype), .eta = min_subnormal(dtype), .largest = max_finite(dtype)};
  return arithmetic;
}

bool within(double found, const Tracked& x) {
  return std::fabs(found - static_cast<double>(x.v)) <= kThreshold * x.err;
}

/// One token of log-probs, whose loss is its term.
Case one_token(const char* loss, double log_prob, double old_log_prob, double ref_log_prob) {
  Case c = zero_case(*find_signature(loss), 1, 1);
  c.spec.reduction = Reduction::sum;
  c.spec.set("kl_estimator", std::string("k1"));
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("log_prob").set(0, log_prob);
  c.batch.at("old_log_prob").set(0, old_log_prob);
  c.batch.at("ref_log_prob").set(0, ref_log_prob);
  return c;
}

TEST(Stages, ALogRatioThatIsStoredBehindItsBoundHasARoundedBound) {
  Case c = one_token("grpo", -1.0, -3.0, 0.0);
  c.spec.set("kl_penalty", 0.0);
  c.batch.at("advantage").set(0, -1.0);
  const auto found = [&](double bound) { return std::exp(bound); };
  const auto asked = [&](double bound, const Arithmetic& arithmetic) {
    c.spec.set("log_ratio_clamp", bound);
    return OneToken(c, arithmetic).term;
  };
  const Arithmetic plain = plain_arithmetic(Dtype::f32, ""),
                   stored = stores(Stage::log_prob, Dtype::bf16);
  const double rounded = round_to(Dtype::bf16, 1.1);
  EXPECT_TRUE(within(found(rounded), asked(1.1, stored)));
  EXPECT_TRUE(within(found(1.1), asked(1.1, stored)));
  EXPECT_FALSE(within(found(rounded), asked(1.1, plain))) << "nothing is stored";
  EXPECT_FALSE(within(found(1.2), asked(1.1, stored))) << "another bound";
  EXPECT_FALSE(within(found(rounded), asked(1.09375, stored))) << "which bf16 holds";
}

TEST(Stages, AKlInputThatIsStoredBehindItsBoundHasARoundedBound) {
  Case c = one_token("kl_penalty", -1.0, -1.0, 2.0);
  c.spec.set("kl_input_clamp", 1.1);
  const double found = -round_to(Dtype::bf16, 1.1);
  EXPECT_TRUE(within(found, OneToken(c, stores(Stage::log_prob, Dtype::bf16)).term));
  EXPECT_FALSE(within(found, OneToken(c, plain_arithmetic(Dtype::f32, "")).term));
}

/// Policy and penalty of opposite signs, which nearly cancel.
Case cancelling_parts() {
  Case c = one_token("grpo", 0.0, 0.0, -1.0063F);
  c.spec.set("kl_penalty", 1.0);
  c.batch.at("advantage").set(0, 1.003F);
  return c;
}

TEST(Stages, PartsOfATermAreStoredBeforeTheyAreAdded) {
  const Case c = cancelling_parts();
  const double policy = -round_to(Dtype::bf16, 1.003F), penalty = round_to(Dtype::bf16, 1.0063F);
  const Arithmetic stored = stores(Stage::per_token, Dtype::bf16);
  EXPECT_TRUE(within(policy + penalty, OneToken(c, stored).term));
  EXPECT_TRUE(within(policy + penalty, OneToken(c, stored).loss));
  EXPECT_FALSE(within(policy + penalty, OneToken(c, plain_arithmetic(Dtype::f32, "")).term));
  EXPECT_FALSE(within(policy, OneToken(c, stored).term)) << "without its penalty";
  EXPECT_FALSE(within(policy - penalty, OneToken(c, stored).term)) << "of the other sign";
  EXPECT_FALSE(within(policy + 1.05 * penalty, OneToken(c, stored).term));
}

TEST(Stages, APartThatIsStoredBeforeItsCoefficientMayNotFit) {
  Case c = one_token("grpo", 0.0, 0.0, -70000.0);
  c.spec.set("kl_penalty", 0.01);
  for (const char* limit : {"kl_input_clamp", "kl_output_clamp"}) c.spec.set(limit, None{});
  const double f32 = max_finite(Dtype::f32);
  EXPECT_GT(OneToken(c, stores(Stage::per_token, Dtype::f16)).term.peak, f32);
  EXPECT_LT(OneToken(c, stores(Stage::per_token, Dtype::bf16)).term.peak, f32);
  c.batch.at("ref_log_prob").set(0, -60000.0);
  EXPECT_LT(OneToken(c, stores(Stage::per_token, Dtype::f16)).term.peak, f32);
}

/// Gradients where what comes back to a part, a coefficient of 0.01 times an upstream of 1e-5, is
/// less than two of the smallest numbers of f16.
void expect_small_part(Case c) {
  c.upstream = 1e-5;
  const Arithmetic stored = stores(Stage::per_token, Dtype::f16);
  const Tracked g = OneToken(c, stored).gradient;
  const double share = round_to(Dtype::f16, 1e-7) / 1e-7, v = static_cast<double>(g.v);
  EXPECT_GT(share, 1.1);
  EXPECT_TRUE(within(share * v, g)) << c.spec.loss;
  EXPECT_FALSE(within(5.0 * v, g)) << c.spec.loss;
  EXPECT_FALSE(within(-3.0 * v, g)) << c.spec.loss;
  EXPECT_FALSE(within(share * v, OneToken(c, plain_arithmetic(Dtype::f32, "")).gradient));
}

TEST(Stages, APartThatIsStoredBeforeItsCoefficientHasAGradientOfThatSize) {
  Case penalty = one_token("grpo", 0.0, 0.0, -0.5);
  penalty.spec.set("kl_penalty", 0.01);
  expect_small_part(penalty);

  Case entropy = zero_case(*find_signature("entropy_bonus"), 1, 1, 2);
  entropy.spec.reduction = Reduction::sum;
  entropy.spec.set("coefficient", 0.01);
  entropy.batch.at("mask").set(0, 1.0);
  entropy.batch.at("logits").set(0, 2.0);
  expect_small_part(entropy);

  Case z_loss = zero_case(*find_signature("cross_entropy"), 1, 1, 2);
  z_loss.spec.reduction = Reduction::sum;
  z_loss.spec.set("z_loss", 0.01);
  z_loss.batch.at("logits").set(0, -40.0);
  z_loss.batch.at("logits").set(1, 3.0);
  z_loss.batch.at("label").set(0, 1.0);
  expect_small_part(z_loss);
}

TEST(Stages, ATermOfOnePartIsRoundedOnce) {
  Case c = zero_case(*find_signature("cross_entropy"), 1, 1, 2);
  c.spec.reduction = Reduction::sum;
  const Tracked term = OneToken(c, stores(Stage::per_token, Dtype::bf16)).term;
  EXPECT_LT(term.err, 1.1 * unit_roundoff(Dtype::bf16) * static_cast<double>(term.v));
}

}  // namespace
}  // namespace lossgate::reference
