// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// Advantages within groups that are changed where a group has so many members.
template <class Change>
impl::Implementation changed_in_groups_of(std::int64_t members, Change change) {
  return answering("group_advantage", nullptr, [=](const Case& c, LossResult& result) {
    const Tensor& group = c.batch.at("group");
    Tensor& advantage = output(result, "advantage");
    for (std::int64_t own = 0; own < group.size(); ++own) {
      std::int64_t count = 0;
      for (std::int64_t s = 0; s < group.size(); ++s) {
        count += group.integer_at(s) == group.integer_at(own);
      }
      if (count == members) advantage.set(own, change(c, advantage.at(own)));
    }
  });
}

Case with_lone_rewards() {
  Case c = ordinary_case("group_advantage");
  c.spec.set("singleton", std::string("reward"));
  return c;
}

TEST(ProbeLone, NamesTheOnlyMemberOfAGroup) {
  const auto over_added = [](const Case& c, double x) { return x / c.spec.number("epsilon"); };
  expect_shown(changed_in_groups_of(1, over_added), with_lone_rewards(), "single one mistaken",
               "wrong where a group has one member, and right where it has several");
}

TEST(ProbeLone, SaysNothingWhereSeveralMembersAreWrong) {
  const auto third = [](const Case&, double x) { return x / 3.0; };
  EXPECT_FALSE(speaks(probe_lone, changed_in_groups_of(2, third), with_lone_rewards()));
  const auto all = answering("group_advantage", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "advantage"), [](double x) { return x / 3.0; });
  });
  EXPECT_FALSE(speaks(probe_lone, all, with_lone_rewards()));
}

}  // namespace
}  // namespace lossgate::properties
