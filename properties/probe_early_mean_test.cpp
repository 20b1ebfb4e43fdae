// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

TEST(ProbeEarlyMean, NamesTheLargerOfTwoMeans) {
  expect_shown(larger_of_two_means(), ordinary_case("value_clip"), "averaged too early",
               "each of some tokens is right where it is all there is, and all together are wrong");
}

TEST(ProbeEarlyMean, SaysNothingOfTermsThatAreWrongByThemselves) {
  const auto narrower = answering("value_clip", [](Case& c) { c.spec.set("value_clip", 0.03); });
  EXPECT_FALSE(speaks(probe_early_mean, narrower, ordinary_case("value_clip")));
  // Each counts as often as it should not.
  const auto summed = answering("value_clip", [](Case& c) {
    if (c.spec.reduction == Reduction::token_mean) c.spec.reduction = Reduction::sum;
  });
  EXPECT_FALSE(speaks(probe_early_mean, summed, ordinary_case("value_clip")));
}

}  // namespace
}  // namespace lossgate::properties
