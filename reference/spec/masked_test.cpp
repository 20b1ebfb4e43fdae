// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/masked.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lossgate {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(HasEmptySequence, WhereNoPositionOfOneCounts) {
  EXPECT_TRUE(has_empty_sequence({false, false}, 1));
  EXPECT_FALSE(has_empty_sequence({false, true}, 1));
  EXPECT_TRUE(has_empty_sequence({true, true, false, false}, 2));
  EXPECT_FALSE(has_empty_sequence({true, false, false, true}, 2));
  EXPECT_FALSE(has_empty_sequence({}, 3)) << "without a token there is nothing that counts";
  EXPECT_FALSE(has_empty_sequence({}, 0));
}

TEST(Ordinary, NumbersStayAsTheyAreAndAllOthersBecomeOrdinary) {
  for (const Quantity quantity : {Quantity::log_prob, Quantity::advantage, Quantity::logit,
                                  Quantity::hidden_state, Quantity::value, Quantity::weight}) {
    for (const double value : {0.0, -0.5, 1.0, -100.0, -1e4}) {
      EXPECT_EQ(ordinary(quantity, value), value);
    }
    for (const double value : {1e4, 2e4, -3.4e38, 700.0, kInfinity, -kInfinity, kNan}) {
      EXPECT_TRUE(is_ordinary(quantity, ordinary(quantity, value))) << value;
    }
    EXPECT_FALSE(is_ordinary(quantity, kNan));
    EXPECT_FALSE(is_ordinary(quantity, -1.1e4));
  }
}

TEST(Ordinary, LogProbsAreNotPositiveBesideTheMarkerOfAnInvalidOne) {
  EXPECT_FALSE(is_ordinary(Quantity::log_prob, 2.0));
  EXPECT_EQ(ordinary(Quantity::log_prob, 700.0), -700.0);
  EXPECT_EQ(ordinary(Quantity::log_prob, 1e9), -kLargestOrdinary);
  EXPECT_EQ(ordinary(Quantity::advantage, 1e9), kLargestOrdinary);
  EXPECT_EQ(ordinary(Quantity::advantage, -1e9), -kLargestOrdinary);
}

TEST(Masked, MinusInfinityComesBesidesTheNumbersOfAHealthyRun) {
  const auto keeps = [](double value) {
    return keeps_to(Masked::minus_infinity, Quantity::log_prob, value);
  };
  for (const double value : {-kInfinity, -1e4, -3.0, 0.0, 1.0}) EXPECT_TRUE(keeps(value)) << value;
  for (const double value : {100.0, -3.4e38, kInfinity, kNan}) EXPECT_FALSE(keeps(value)) << value;
}

TEST(Masked, EachClassHoldsWhatTheNextOneHolds) {
  const double values[] = {0.0, -0.0, 1.0, -1e4, 1e4, 3.4e38, -kInfinity, kInfinity, kNan};
  const std::vector<Masked> chains[] = {
      {Masked::zero, Masked::ordinary, Masked::finite, Masked::anything},
      {Masked::zero, Masked::ordinary, Masked::minus_infinity, Masked::anything}};
  for (const auto& chain : chains) {
    int last = 0;
    for (const Masked masked : chain) {
      int count = 0;
      for (const double value : values) {
        const bool keeps = keeps_to(masked, Quantity::logit, value);
        const double other = kept(masked, Quantity::logit, value);
        EXPECT_TRUE(keeps_to(masked, Quantity::logit, other)) << value;
        if (keeps) EXPECT_TRUE(other == value || std::isnan(value));
        count += keeps;
      }
      EXPECT_GT(count, last);
      last = count;
    }
  }
}

}  // namespace
}  // namespace lossgate
