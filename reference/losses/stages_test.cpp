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

}  // namespace
}  // namespace lossgate::reference
