// SPDX-License-Identifier: Apache-2.0
#include "ci/budget.h"

#include <gtest/gtest.h>

#include "ci/errors.h"

namespace lossgate::ci {
namespace {

TEST(Budget, IsATimeOrANumberOfCases) {
  EXPECT_EQ(parse_budget("8h").seconds, 8 * 3600.0);
  EXPECT_EQ(parse_budget("20m").seconds, 1200.0);
  EXPECT_EQ(parse_budget("1.5 s").seconds, 1.5);
  EXPECT_EQ(parse_budget("200000 cases").cases, 200'000);
  EXPECT_EQ(parse_budget("7cases").cases, 7);
}

TEST(Budget, MayCountFromNow) {
  const Budget night = parse_budget("+8h").after(3600.0, 50);
  EXPECT_EQ(night.seconds, 9 * 3600.0);
  EXPECT_EQ(night.cases, 0);
  EXPECT_EQ(parse_budget("+200 cases").after(3600.0, 50).cases, 250);
  EXPECT_EQ(parse_budget("+200 cases").after(3600.0, 50).seconds, 0.0);
  EXPECT_EQ(parse_budget("8h").after(3600.0, 50).seconds, 8 * 3600.0);
  EXPECT_EQ(night.after(3600.0, 50).seconds, night.seconds);
}

TEST(Budget, OfAnyOtherKindIsRefused) {
  for (const char* text :
       {"+", "++1h", "+-1h", "", "8", "h", "-1h", "0s", "nan s", "8 hours", "1.5 cases", "1e30h"}) {
    EXPECT_THROW(parse_budget(text), InputError) << text;
  }
}

TEST(Budget, IsSpentWhenEitherLimitIsReached) {
  EXPECT_FALSE((Budget{.seconds = 10.0, .cases = 0}.spent(9.9, 1'000'000)));
  EXPECT_TRUE((Budget{.seconds = 10.0, .cases = 0}.spent(10.0, 0)));
  EXPECT_TRUE((Budget{.seconds = 0.0, .cases = 5}.spent(0.0, 5)));
}

TEST(Shard, IsOneOfSeveral) {
  EXPECT_EQ(parse_shard("2/5").index, 2);
  EXPECT_EQ(parse_shard("2/5").count, 5);
  for (const char* text : {"", "1", "0/3", "4/3", "1/0", "1/3x", "a/b", "1-3"}) {
    EXPECT_THROW(parse_shard(text), InputError) << text;
  }
}

}  // namespace
}  // namespace lossgate::ci
