// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

namespace lossgate::fuzz {
namespace {

Kept first_indices(std::int64_t n) {
  Kept all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool has(const Kept& kept, std::int64_t index) { return std::ranges::binary_search(kept, index); }

/// What is left of n indices, and how often it asked.
struct Left {
  Kept kept;
  std::int64_t tried = 0;
};

Left left_of(std::int64_t n, void (*drop)(Kept&, const Suffices&), const Suffices& suffices) {
  Left left{.kept = first_indices(n)};
  drop(left.kept, [&](const Kept& rest) {
    ++left.tried;
    return suffices(rest);
  });
  return left;
}

TEST(DropEnds, LeavesExactlyAsManyAsItTakes) {
  for (const std::int64_t n : {1, 2, 3, 7, 24, 4096, 66561}) {
    for (const std::int64_t least :
         {std::int64_t{1}, n / 3 + 1, std::min<std::int64_t>(n, 1025), n}) {
      const Left left =
          left_of(n, drop_ends, [&](const Kept& kept) { return std::ssize(kept) >= least; });
      EXPECT_EQ(std::ssize(left.kept), least) << "of " << n;
      EXPECT_LE(left.tried, 70) << "of " << n;
    }
  }
}

TEST(DropEnds, LeavesTheStretchBetweenTwo) {
  const Left left =
      left_of(4096, drop_ends, [](const Kept& kept) { return has(kept, 1000) && has(kept, 3000); });
  EXPECT_EQ(left.kept.front(), 1000);
  EXPECT_EQ(left.kept.back(), 3000);
  EXPECT_EQ(left.kept.size(), 2001U);
}

TEST(DropEnds, FindsWhatHangsOnARemainder) {
  const auto left = [](const Suffices& suffices) {
    return left_of(66561, drop_ends, suffices).kept.size();
  };
  EXPECT_EQ(left([](const Kept& kept) { return kept.size() % 1024 != 0; }), 1U);
  EXPECT_EQ(left([](const Kept& kept) { return kept.size() > 1024 && kept.size() % 1024 == 1; }),
            1025U);
}

TEST(DropEnds, KeepsGroupsOfThreeWhole) {
  const auto whole = [](const Kept& kept) { return kept.size() % 3 == 0 && has(kept, 7); };
  EXPECT_EQ(left_of(24, drop_ends, whole).kept, (Kept{6, 7, 8}));
}

TEST(DropEnds, MissesNoMoreThanItSays) {
  for (std::int64_t n = 1; n < 3000; ++n) {
    const Left left = left_of(n, drop_ends, [](const Kept&) { return false; });
    EXPECT_LE(left.tried, 4 * std::bit_width(static_cast<std::uint64_t>(n)) - 2) << "of " << n;
    EXPECT_EQ(left.kept, first_indices(n));
  }
}

TEST(DropChunks, LeavesTwoThatAreNeededTogether) {
  const Left left = left_of(4096, drop_chunks,
                            [](const Kept& kept) { return has(kept, 1000) && has(kept, 3000); });
  EXPECT_EQ(left.kept, (Kept{1000, 3000}));
  EXPECT_LE(left.tried, 100);
}

TEST(DropChunks, LeavesManyThatLieApart) {
  const Left left = left_of(4096, drop_chunks, [](const Kept& kept) {
    for (std::int64_t index = 0; index < 4096; index += 100) {
      if (!has(kept, index)) return false;
    }
    return true;
  });
  EXPECT_EQ(left.kept.size(), 41U);
  EXPECT_LE(left.tried, 1000);
}

TEST(DropChunks, LeavesNothingThatAShortListCanDoWithout) {
  for (std::int64_t n = 1; n <= kMostMisses; ++n) {
    const auto others = [&](const Kept& kept) {
      return std::ssize(kept) - (has(kept, n / 2) ? 1 : 0) == n - 1;
    };
    const Kept kept = left_of(n, drop_chunks, others).kept;
    EXPECT_EQ(kept, without(first_indices(n), {n / 2}));
  }
}

TEST(DropChunks, MissesNoMoreThanItSays) {
  for (std::int64_t n = 1; n < 3000; ++n) {
    const Left left = left_of(n, drop_chunks, [](const Kept&) { return false; });
    EXPECT_LE(left.tried, 150) << "of " << n;
    EXPECT_EQ(left.kept, first_indices(n));
  }
}

TEST(Without, LeavesThoseThatTheOtherHasNot) {
  EXPECT_EQ(without({1, 2, 5, 9}, {2, 9}), (Kept{1, 5}));
}

}  // namespace
}  // namespace lossgate::fuzz
