// SPDX-License-Identifier: Apache-2.0
#include "fuzz/choices.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace lossgate::fuzz {
namespace {

TEST(Choices, SameSeedGivesTheSameDrawsForEver) {
  // The first two words that SplitMix64 gives for seed 42 in every published implementation.
  Choices words(42);
  const auto word = [&] {
    return static_cast<std::uint64_t>(words.integer(INT64_MIN, INT64_MAX)) ^
           (std::uint64_t{1} << 63);
  };
  EXPECT_EQ(word(), 0xbdd732262feb6e95);
  EXPECT_EQ(word(), 0x28efe333b266f103);
}

TEST(Choices, AnAxisDoesNotFeelTheDrawsOfAnother) {
  Choices once(7);
  once.enter("mask");
  const std::int64_t expected = once.integer(0, 1 << 30);
  Choices twice(7);
  twice.enter("shape");
  twice.integer(0, 9);
  twice.enter("mask");
  EXPECT_EQ(twice.integer(0, 1 << 30), expected);
  twice.enter("split");
  EXPECT_NE(twice.integer(0, 1 << 30), expected);
}

TEST(Choices, ExhaustedBytesGiveTheSimplestAnswer) {
  Choices choices{std::span<const std::uint8_t>()};
  constexpr int kItems[] = {5, 6, 7};
  EXPECT_EQ(choices.integer(-3, 9), -3);
  EXPECT_EQ(choices.one_of(kItems), 5);
  EXPECT_EQ(choices.weighted(std::array{0, 2, 3}), 1u);
  EXPECT_FALSE(choices.sometimes(0.999));
  EXPECT_EQ(choices.either_sign(3.0), 3.0);
  EXPECT_EQ(choices.real(-1.0, 4.0), -1.0);
  EXPECT_EQ(choices.real(0.0, -4.0), 0.0);
  EXPECT_EQ(choices.log_uniform(0.75, 8.0), 0.75);
  EXPECT_EQ(choices.bell(), 0.0);
}

TEST(Choices, CertaintyAndImpossibilityHold) {
  Choices choices(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(choices.sometimes(1.0));
    EXPECT_FALSE(choices.sometimes(0.0));
  }
}

TEST(Choices, BellHasMeanZeroAndDeviationOne) {
  Choices choices(3);
  double sum = 0.0, squares = 0.0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double value = choices.bell();
    EXPECT_LE(std::fabs(value), 3.5);
    sum += value;
    squares += value * value;
  }
  // Five deviations of the mean and of the mean square of this many draws.
  EXPECT_NEAR(sum / kCount, 0.0, 5.0 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0, 10.0 / std::sqrt(kCount));
}

TEST(Choices, WeightsAreRespected) {
  Choices choices(5);
  std::array<int, 3> counts{};
  for (int i = 0; i < 6000; ++i) ++counts[choices.weighted(std::array{1, 0, 2})];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 2000, 200);
}

TEST(Choices, EveryIntegerOfARangeIsReached) {
  Choices choices(9);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 500; ++i) seen.insert(choices.integer(-5, 5));
  EXPECT_EQ(seen.size(), 11u);
}

RC_GTEST_PROP(Choices, DrawsStayInTheirRanges,
              (const std::vector<std::uint8_t>& bytes, std::uint64_t seed, bool seeded)) {
  Choices choices = seeded ? Choices(seed) : Choices(std::span<const std::uint8_t>(bytes));
  const auto low = *rc::gen::arbitrary<std::int64_t>();
  const auto high = *rc::gen::suchThat<std::int64_t>([low](std::int64_t x) { return x >= low; });
  const std::int64_t drawn = choices.integer(low, high);
  RC_ASSERT(low <= drawn && drawn <= high);
  const double real = choices.real(2.0, -3.0);
  RC_ASSERT(-3.0 < real && real <= 2.0);
  const double size = choices.log_uniform(0x1p-1070, 0x1.8p1023);
  RC_ASSERT(0x1p-1070 <= size && size <= 0x1.8p1023);
  RC_ASSERT(choices.weighted(std::array{0, 3, 0, 1}) % 2 == 1u);
}

}  // namespace
}  // namespace lossgate::fuzz
