// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/groups.h"

#include <gtest/gtest.h>

#include <vector>

namespace lossgate {
namespace {

Tensor groups(const std::vector<int>& numbers) {
  Tensor group = Tensor::zeros(Dtype::i64, {static_cast<std::int64_t>(numbers.size())});
  for (std::size_t s = 0; s < numbers.size(); ++s) {
    group.set(static_cast<std::int64_t>(s), numbers[s]);
  }
  return group;
}

TEST(EvenGroups, AreAsLargeAsEachOtherAndLieSideBySideFrom0On) {
  EXPECT_TRUE(are_even_groups(groups({0, 0, 1, 1, 2, 2})));
  EXPECT_TRUE(are_even_groups(groups({0, 0, 0})));
  EXPECT_TRUE(are_even_groups(groups({})));
  EXPECT_FALSE(are_even_groups(groups({0, 0, 1, 1, 1})));
  EXPECT_FALSE(are_even_groups(groups({0, 1, 0, 1})));
  EXPECT_FALSE(are_even_groups(groups({1, 1, 0, 0})));
  EXPECT_FALSE(are_even_groups(groups({0, 0, 2, 2})));
  EXPECT_FALSE(are_even_groups(groups({0, 1, 2}))) << "one member has no deviation";
  EXPECT_FALSE(are_even_groups(groups({0})));
}

TEST(EvenGroups, HaveAsManyMembersAsWereWantedOrAsDivideTheSequences) {
  EXPECT_EQ(members_of_even_groups(8, 4), 4);
  EXPECT_EQ(members_of_even_groups(8, 3), 2);
  EXPECT_EQ(members_of_even_groups(9, 2), 3);
  EXPECT_EQ(members_of_even_groups(7, 2), 7);
  EXPECT_EQ(members_of_even_groups(4, 99), 4);
}

TEST(EvenGroups, AreMadeOfAnyNumbers) {
  for (const auto& numbers : std::vector<std::vector<int>>{
           {5}, {3, 1}, {0, 1, 2, 0}, {9, 9, 9, 9, 2, 2}, {4, 4, 4, 1, 1, 1, 1}}) {
    Tensor made = groups(numbers);
    make_groups_even(made);
    EXPECT_EQ(are_even_groups(made), numbers.size() > 1);
  }
  Tensor six = groups({7, 7, 7, 1, 2, 3});
  make_groups_even(six);
  EXPECT_EQ(six, groups({0, 0, 0, 1, 1, 1}));
}

}  // namespace
}  // namespace lossgate
