// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

std::int64_t members_of(const Tensor& group, std::int64_t own) {
  std::int64_t count = 0;
  for (std::int64_t s = 0; s < group.size(); ++s) {
    count += group.integer_at(s) == group.integer_at(own);
  }
  return count;
}

/// Sums of a group divided by the size of the first one.
impl::Implementation by_the_first_size() {
  return answering("group_advantage", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& group = c.batch.at("group");
    const Tensor& reward = c.batch.at("reward");
    const auto n = static_cast<double>(members_of(group, 0));
    for (std::int64_t own = 0; own < group.size(); ++own) {
      if (members_of(group, own) < 2) continue;
      double sum = 0.0, squares = 0.0;
      const auto each = [&](auto add) {
        for (std::int64_t s = 0; s < group.size(); ++s) {
          if (group.integer_at(s) == group.integer_at(own)) add(reward.at(s));
        }
      };
      each([&](double x) { sum += x; });
      each([&](double x) { squares += std::pow(x - sum / n, 2.0); });
      const double deviation = std::sqrt(squares / std::fmax(n - 1.0, 1.0));
      output(result, "advantage")
          .set(own, (reward.at(own) - sum / n) / (deviation + c.spec.number("epsilon")));
    }
  });
}

/// Rewards in groups with these numbers, one alone before two.
Case rewards_in(std::int64_t first, std::int64_t second) {
  Case c = ordinary_case("group_advantage");
  Tensor& group = c.batch.at("group");
  for (std::int64_t s = 0; s < group.size(); ++s) {
    group.set(s, static_cast<double>(s == 0 ? first : second));
  }
  return c;
}

TEST(ProbeGroups, NamesTheSizeOfAnotherGroup) {
  Case c = rewards_in(0, 9);
  // Of numbers that lie around 0 the sum is 0, whatever divides it: nothing cancels.
  for (std::int64_t s = 0; s < c.batch.at("reward").size(); ++s) {
    c.batch.at("reward").set(s, static_cast<double>(s % 2));
  }
  expect_shown(by_the_first_size(), c, "wrong divisor",
               "right where groups are as large as each other, wherever their members are");
}

TEST(ProbeGroups, NamesGroupsThatTheirNumbersMixUp) {
  const auto modulo = answering("group_advantage", [](Case& c) {
    change_each(c.batch.at("group"), [](double x) { return std::fmod(x, 1024.0); });
  });
  const auto narrow = answering("group_advantage", [](Case& c) {
    change_each(c.batch.at("group"),
                [](double x) { return static_cast<double>(static_cast<float>(x)); });
  });
  const char* because = "right where the same groups are counted from 0";
  expect_shown(modulo, rewards_in(3, 3 + 1024), "groups mixed up", because);
  expect_shown(narrow, rewards_in(1 << 24, (1 << 24) + 1), "groups mixed up", because);
}

TEST(ProbeGroups, SaysNothingOfWhatAnyGroupShows) {
  const auto halved = answering("group_advantage", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "advantage"), [](double x) { return 0.5 * x; });
  });
  EXPECT_FALSE(speaks(probe_groups, halved, rewards_in(5, 9)));
}

TEST(ProbeGroups, BlamesNoSizeForOneAlone) {
  const auto alone = answering("group_advantage", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& group = c.batch.at("group");
    for (std::int64_t s = 0; s < group.size(); ++s) {
      if (members_of(group, s) == 1) output(result, "advantage").set(s, 1.0);
    }
  });
  EXPECT_FALSE(speaks(probe_groups, alone, rewards_in(0, 1)));
}

}  // namespace
}  // namespace lossgate::properties
