// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/rollout_correction.h"

#include <gtest/gtest.h>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

struct Weights final : Sink<Tracked> {
  explicit Weights(const Case& c) {
    const Loss& loss = *find_loss("rollout_correction");
    evaluate(loss, Problem(loss.signature, c), plain_arithmetic(Dtype::f32, ""), *this);
  }
  void entry(std::size_t /*output*/, std::int64_t /*index*/, const Tracked& x) override {
    of_token.push_back(x);
  }
  std::vector<Tracked> of_token;
};

/// Two tokens of one sequence, to which engine and trainer give the same log-probs.
Case of_one_policy(const std::string& level) {
  Case c = zero_case(*find_signature("rollout_correction"), 1, 2);
  c.spec.set("level", level);
  c.spec.set("beyond", "drop");
  c.spec.set("weight_high", 1.0);
  for (const char* field : {"old_log_prob", "sampler_log_prob"}) {
    c.batch.at(field).set(0, -0.75);
    c.batch.at(field).set(1, -3.0);
  }
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("mask").set(1, 1.0);
  return c;
}

TEST(RolloutCorrection, KeepsAWeightOfOneAtABoundOfOne) {
  for (const char* level : {"token", "sequence", "geometric"}) {
    for (const Tracked& weight : Weights(of_one_policy(level)).of_token) {
      EXPECT_EQ(weight.v, 1.0L) << level;
      EXPECT_EQ(weight.half, 0.0) << level << ": and none that drops it holds";
    }
  }
}

TEST(RolloutCorrection, MayDropAWeightWhoseLogRatiosCancel) {
  Case c = of_one_policy("sequence");
  c.batch.at("old_log_prob").set(0, -0.75 + 0x1p-22);
  c.batch.at("sampler_log_prob").set(1, -3.0 + 0x1p-22);
  EXPECT_GT(Weights(c).of_token.at(0).half, 0.4);
}

}  // namespace
}  // namespace lossgate::reference
