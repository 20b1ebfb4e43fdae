// SPDX-License-Identifier: Apache-2.0
#include "ci/drawn_ties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/candidates.h"
#include "ci/given_critic.h"

namespace lossgate::ci {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// A critic's loss that is either form of the clip on plain cases.
Recognition tied() {
  Recognition match = critic();
  match.likeness.candidate.options = {{"clip_form", "around_old"}};
  match.equals = {{{"clip_form", "interval"}}};
  return match;
}

TEST(DrawnTies, StayWhereNoneOfThemCanBeAsked) {
  IdentifyOptions options;
  options.interpreter = "/no/such/python";
  const Recognition settled = settled_by_drawn_cases(options, tied(), {});
  EXPECT_THAT(settled.likeness.candidate.options,
              ElementsAre(Pair("clip_form", OptionValue("around_old"))));
  EXPECT_THAT(settled.remarks,
              Contains(HasSubstr("equal on these cases with clip_form interval, too")));
  EXPECT_THAT(settled.equals, IsEmpty());
}

}  // namespace
}  // namespace lossgate::ci
