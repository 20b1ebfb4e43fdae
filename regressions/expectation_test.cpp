// SPDX-License-Identifier: Apache-2.0
#include "regressions/expectation.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lossgate::regressions {
namespace {

TEST(Expectation, ReadsPairsWhateverIsBetweenThem) {
  const std::vector<Expectation> expected = {{"grpo_naive", "finite_backward"}, {"b", "c"}};
  EXPECT_EQ(parse_expectations("grpo_naive:finite_backward, b:c"), expected);
  EXPECT_EQ(parse_expectations(" grpo_naive:finite_backward\n\tb:c "), expected);
  EXPECT_TRUE(parse_expectations("").empty());
  EXPECT_TRUE(parse_expectations(" , ").empty());
}

TEST(Expectation, RefusesHalfAPair) {
  for (const char* text : {"grpo_naive", ":finite_backward", "grpo_naive:", "a:b c"}) {
    EXPECT_THROW(parse_expectations(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace lossgate::regressions
