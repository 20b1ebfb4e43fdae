// SPDX-License-Identifier: Apache-2.0
#include "ci/telling_cases.h"

#include <gtest/gtest.h>

#include <string>

#include "reference/reference.h"

namespace lossgate::ci {
namespace {

Candidate clamped(OptionValue most) {
  return {.reduction = Reduction::token_mean,
          .options = {{"kl_penalty", 0.04}, {"kl_input_clamp", std::move(most)}}};
}

TEST(HostileCasesThatTell, ShowWhatTheFirstCandidateDoesOtherwise) {
  const reference::Loss& loss = *reference::find_loss("grpo");
  const Formula formula(loss, plain_signature(loss, {}, Dtype::f64), Dtype::f64);
  const auto told = hostile_cases_that_tell(formula, {clamped(None{}), clamped(20.0)});
  EXPECT_EQ(told.size(), 2u) << "enough of them";
  for (const Case& c : told) {
    EXPECT_TRUE(
        Formula::differ(formula.values(c, clamped(None{})), formula.values(c, clamped(20.0))));
  }
  EXPECT_TRUE(hostile_cases_that_tell(formula, {clamped(20.0), clamped(20.0)}).empty());
  EXPECT_TRUE(hostile_cases_that_tell(formula, {clamped(20.0)}).empty());
}

}  // namespace
}  // namespace lossgate::ci
