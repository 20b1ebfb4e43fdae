// SPDX-License-Identifier: Apache-2.0
#include "ci/misfits.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

using Lines = std::vector<std::string>;

KnownNames known(bool all = true) {
  return {.implementations = {{"grpo", {"tail", "offset16"}}, {"jsd", {"torch"}}},
          .properties = {"no_laundering", "reference_agreement"},
          .all = all};
}

Lines of_waivers(const Lines& patterns, const KnownNames& names = known()) {
  Policy policy;
  for (const std::string& pattern : patterns) {
    policy.waivers.push_back(
        {.pattern = pattern, .reason = "r", .issue = "i", .expires = "2026-12-31"});
  }
  return misfits(policy, names);
}

TEST(Misfits, NameWhatIsMisspelt) {
  EXPECT_EQ(of_waivers({"grpo|sum|tail|reference_agrement|*"}),
            Lines{"grpo|sum|tail|reference_agrement|*: no property is called "
                  "'reference_agrement'; did you mean 'reference_agreement'?"});
  EXPECT_EQ(of_waivers({"grpo|sum|tial|*"}),
            Lines{"grpo|sum|tial|*: no implementation of grpo is called 'tial'; did you mean "
                  "'tail'?"});
  EXPECT_EQ(of_waivers({"grpq|*"}),
            Lines{"grpq|*: no loss is called 'grpq'; did you mean 'grpo'?"});
  EXPECT_EQ(of_waivers({"everything"}), Lines{"everything: no loss is called 'everything'"});
}

TEST(Misfits, AreNotWhatExists) {
  EXPECT_EQ(of_waivers({"grpo|sum|tail|no_laundering|cause|loss", "jsd|sum|torch|*", "*"}),
            Lines{});
  // A star may stand for several parts, so that nobody knows what follows it.
  EXPECT_EQ(of_waivers({"grpo|*|tial|*", "gr*|sum|tial|x"}), Lines{});
}

TEST(Misfits, AreOfTheLossThatIsNamed) {
  EXPECT_EQ(of_waivers({"jsd|sum|tail|*"}),
            Lines{"jsd|sum|tail|*: no implementation of jsd is called 'tail'"});
}

TEST(Misfits, AreTakenForASlipOnlyWhereOthersMayHaveMore) {
  EXPECT_EQ(of_waivers({"grpo|sum|eager_native|*"}, known(false)), Lines{});
  EXPECT_EQ(of_waivers({"grpo|sum|tial|*"}, known(false)).size(), 1U);
  EXPECT_EQ(of_waivers({"my_own_loss|sum|tail|*"}, known(false)), Lines{});
  EXPECT_EQ(of_waivers({"grpq|sum|tail|*"}, known(false)).size(), 1U);
}

TEST(Misfits, AreToldOnceForEachName) {
  Policy policy;
  policy.baseline = {{"grpo|sum|tial|no_laundering|a|loss", "rare", "-"},
                     {"grpo|sum|tial|no_laundering|b|loss", "rare", "-"},
                     {"grpo|sum|tail|no_laundering|a|loss", "rare", "-"}};
  EXPECT_EQ(misfits(policy, known()),
            Lines{"grpo|sum|tial|no_laundering|a|loss and 1 more: no implementation of grpo is "
                  "called 'tial'; did you mean 'tail'?"});
}

}  // namespace
}  // namespace lossgate::ci
