// SPDX-License-Identifier: Apache-2.0
#include "ci/suggestion.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

TEST(Suggestion, IsTheNearestNameOrNone) {
  const std::vector<std::string> known = {"finite_forward", "finite_backward", "grpo"};
  EXPECT_EQ(nearest("finite_bakward", known), "finite_backward");
  EXPECT_EQ(nearest("gpro", known), "grpo");
  EXPECT_EQ(nearest("determinism", known), "");
  EXPECT_EQ(nearest(std::string(100000, 'x'), known), "");
  EXPECT_EQ(unknown_name("loss", "jsd", {"a", "b"}), "unknown loss 'jsd'; known: a, b");
}

}  // namespace
}  // namespace lossgate::ci
