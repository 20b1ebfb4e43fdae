// SPDX-License-Identifier: Apache-2.0
#include "ci/under_way.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "fuzz/engine.h"

namespace lossgate::ci {
namespace {

TEST(UnderWay, ShowsTheCaseUntilItsEnd) {
  UnderWay under_way;
  EXPECT_FALSE(under_way.asking());
  under_way.begin("a case");
  EXPECT_TRUE(under_way.asking());
  EXPECT_EQ(under_way.text(), "a case");
  under_way.end();
  EXPECT_FALSE(under_way.asking());
  EXPECT_EQ(under_way.text(), "");
  EXPECT_EQ(under_way.since_sign_of_life().count(), 0.0);
}

TEST(UnderWay, SaysThatAViolationIsBeingExplained) {
  UnderWay mine;
  UnderWay theirs(::dup(mine.descriptor()));
  EXPECT_FALSE(mine.explaining());
  theirs.begin("a case");
  theirs.explain(true);
  theirs.end();
  EXPECT_TRUE(mine.explaining()) << "the case is over, and nothing was told of it";
  theirs.explain(false);
  EXPECT_FALSE(mine.explaining());
}

TEST(UnderWay, KeepsNothingOfATextThatIsTooLarge) {
  UnderWay under_way;
  under_way.begin(std::string(fuzz::kMostText, 'x'));
  EXPECT_EQ(under_way.text().size(), fuzz::kMostText);
  under_way.begin(std::string(fuzz::kMostText + 1, 'x'));
  EXPECT_TRUE(under_way.asking()) << "it may crash all the same";
  EXPECT_EQ(under_way.text(), "");
}

}  // namespace
}  // namespace lossgate::ci
