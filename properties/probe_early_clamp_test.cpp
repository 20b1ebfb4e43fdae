// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// GRPO of which no log-ratio of a token is beyond the limit.
impl::Implementation with_tokens_within(double limit) {
  return answering("grpo", [limit](Case& c) {
    const Tensor& own = c.batch.at("log_prob");
    Tensor& old = c.batch.at("old_log_prob");
    at_positions(c, true, [&](std::int64_t p) {
      old.set(p, own.at(p) - std::clamp(own.at(p) - old.at(p), -limit, limit));
    });
  });
}

/// One whose first token moved far, so that its sequence's weight is large, and not clipped.
Case with_a_far_token() {
  Case c = ordinary_case("grpo");
  c.spec.set("level", std::string("sequence"));
  c.spec.set("log_ratio_clamp", 20.0);
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 60.0);
  for (std::int64_t p = 0; p < c.shape[Axis::tokens]; ++p) c.batch.at("advantage").set(p, -1.0);
  return c;
}

TEST(ProbeEarlyClamp, SeesEachTokenHeldToTheLimitOfASequence) {
  expect_shown(
      with_tokens_within(20.0), with_a_far_token(), "dead clamp",
      "log_ratio_clamp bounds each log-ratio, where the formula bounds what is made of all "
      "of them");
}

TEST(ProbeEarlyClamp, SaysNothingOfAnotherLimitNorOfOneThatIsEachTokens) {
  EXPECT_FALSE(speaks(probe_early_clamp, with_tokens_within(10.0), with_a_far_token()));
  Case of_tokens = with_a_far_token();
  of_tokens.spec.set("level", std::string("token"));
  EXPECT_FALSE(speaks(probe_early_clamp, with_tokens_within(10.0), of_tokens));
  const auto unclipped = answering("value_clip", [](Case& c) { c.spec.set("value_clip", None{}); });
  EXPECT_FALSE(speaks(probe_early_clamp, unclipped, ordinary_case("value_clip")))
      << "as if no value were farther from its old one than the limit, alone or not";
}

}  // namespace
}  // namespace lossgate::properties
