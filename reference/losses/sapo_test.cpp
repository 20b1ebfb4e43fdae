// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/sapo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

/// One token of advantage -1 at a log-ratio.
Case at_log_ratio(double log_ratio) {
  Case c = zero_case(*find_signature("sapo"), 1, 1);
  c.spec.reduction = Reduction::sum;
  c.spec.set("tau_negative", 1.0);
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("advantage").set(0, -1.0);
  c.batch.at("old_log_prob").set(0, -log_ratio);
  return c;
}

TEST(Sapo, TakesTheWeightsSlopeForOneThatABackwardMakesOfExpm1) {
  for (const float log_ratio : {-3.0F, -9.0F, -20.0F}) {
    Case c = at_log_ratio(log_ratio);
    c.spec.set("log_ratio_clamp", None{});
    const Tracked gradient = OneToken(c, plain_arithmetic(Dtype::f32, "")).gradient;
    // sigmoid'(w - 1) times 4, and the slope of expm1 as PyTorch has it.
    const float gap = std::expm1(log_ratio), gate = 1.0F / (1.0F + std::exp(-gap));
    const double actual = 4.0F * gate * (1.0F - gate) * (gap + 1.0F);
    const double error = std::fabs(actual - static_cast<double>(gradient.v));
    EXPECT_LE(error, kThreshold * gradient.err) << log_ratio;
    EXPECT_LT(gradient.err, 4.0 * unit_roundoff(Dtype::f32)) << log_ratio;
    if (log_ratio == -20.0F) EXPECT_GT(error, 0.9 * static_cast<double>(gradient.v));
  }
}

TEST(Sapo, LetsNothingFlowThroughAWeightBehindItsClamp) {
  Case c = at_log_ratio(-20.0);
  c.spec.set("log_ratio_clamp", 10.0);
  EXPECT_TRUE(OneToken(c, plain_arithmetic(Dtype::f32, "")).gradient.is_exact_zero());
}

}  // namespace
}  // namespace lossgate::reference
