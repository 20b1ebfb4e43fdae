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

}  // namespace
}  // namespace lossgate::reference
