// SPDX-License-Identifier: Apache-2.0
#include "ci/unlike_before.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A campaign over grpo/host.
std::vector<Arm> one_arm() {
  PlanOptions options;
  options.filters.losses = {"grpo"};
  options.filters.implementations = {"host"};
  static const Plan plan(options);
  return arms_of(plan);
}

report::Request with_seed(std::uint64_t seed) {
  report::Request request;
  request.seed = seed;
  return request;
}

TEST(UnlikeBefore, SaysNothingWhereACampaignGoesOnAsItBegan) {
  History history;
  EXPECT_THAT(unlike_before(history, one_arm(), with_seed(2)), IsEmpty());
  history.seed = 2;
  history.spent["grpo/host"].cases = 7;
  EXPECT_THAT(unlike_before(history, one_arm(), with_seed(2)), IsEmpty());
}

TEST(UnlikeBefore, NamesTheSeedWithWhichItBegan) {
  History history;
  history.seed = 1;
  EXPECT_THAT(unlike_before(history, one_arm(), with_seed(2)),
              ElementsAre(HasSubstr("begun with seed 1, ")));
}

TEST(UnlikeBefore, NamesWhatIsNotAskedAnyMore) {
  History history;
  history.spent["grpo/host"].cases = 7;
  history.spent["jsd/mine"].cases = 7;
  EXPECT_THAT(unlike_before(history, one_arm(), with_seed(2)),
              ElementsAre(HasSubstr("asked before and not now: jsd/mine;")));
}

}  // namespace
}  // namespace lossgate::ci
