// SPDX-License-Identifier: Apache-2.0
#include "reference/deviations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lossgate::reference {
namespace {

class Deviation : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

TEST_F(Deviation, RootOfASumThatIsAllRoundingIsOffByTheRootOfWhatThatIsOff) {
  const double e = 1e-12;
  const Tracked root = root_of_squares(Tracked{0.0L, e, 1.0, 0.0});
  EXPECT_EQ(root.v, 0.0L);
  EXPECT_NEAR(kThreshold * root.err, std::sqrt(kThreshold * e), 1e-12);
  // Well known, it is the ordinary root; an exact 0 stays one.
  const Tracked four{4.0L, e, 4.0, 0.0};
  EXPECT_NEAR(root_of_squares(four).err, sqrt(four).err, 1e-6 * sqrt(four).err);
  EXPECT_TRUE(root_of_squares(Tracked{}).is_exact_zero());
}

TEST_F(Deviation, QuotientByWhatIsAtLeastAFloorIsNoSteeperThanThere) {
  const Tracked floor{1e-3L, 0.0, 1e-3, 0.0}, unsure{2e-3L, 5e-3, 2e-3, 0.0},
      one{1.0L, 1e-6, 1.0, 0.0};
  EXPECT_EQ((one / unsure).err, HUGE_VAL);
  const Tracked quotient = over_at_least(one, unsure, floor);
  // |1 / b - 1 / 0.002| for any b from 0.001 on is at most 500 0.001 / 0.001, times what b may be
  // off.
  EXPECT_GE(kThreshold * quotient.err, 500.0);
  EXPECT_LE(quotient.err, 500.0 * 5e-3 / 1e-3 + 1.0);
  EXPECT_EQ(over_at_least(one, unsure, Tracked{1e-3L, 1e-3, 1e-3, 0.0}).err, HUGE_VAL)
      << "a floor that may be 0 is none";
  const Tracked lost{1e-9L, 6e-8, 1e-9, 0.0};
  EXPECT_EQ(over_at_least(Tracked{}, lost, lost).peak, HUGE_VAL) << "0 / 0";
  EXPECT_TRUE(over_at_least(Tracked{}, unsure, floor).is_exact_zero());
}

TEST_F(Deviation, OfWhatOverflowsMakesZeros) {
  const Tracked most{1e30L, 0.0, 1e30, 0.0}, floor{1e-6L, 0.0, 1e-6, 0.0};
  const Tracked deviation = root_of_squares(most * most);
  EXPECT_GT(deviation.peak, max_finite(Dtype::f32));
  const Tracked quotient = over_at_least(most, deviation, floor);
  EXPECT_NEAR(static_cast<double>(quotient.v), 1.0, 1e-6);
  EXPECT_GE(kThreshold * quotient.err, 1.0) << "a number over infinity";
}

TEST_F(Deviation, OfANumberFromItselfIsNone) {
  EXPECT_TRUE(less_itself(Tracked{7.0L, 1e-3, 7.0, 0.0}).is_exact_zero());
  const Tracked of_infinity = less_itself(Entry<Tracked>::stored(HUGE_VAL, -1));
  EXPECT_EQ(of_infinity.v, 0.0L);
  EXPECT_EQ(of_infinity.peak, HUGE_VAL) << "or no number";
}

TEST_F(Deviation, OfEqualProductsMayBeWhatOneOfThemRounds) {
  const float x = 0.51F, r = 9999.7F, product = x * r;
  const double left = std::fma(static_cast<double>(x), r, -static_cast<double>(product));
  EXPECT_NE(left, 0.0);
  const Tracked zero = of_equal_products(Tracked{}, Entry<Tracked>::stored(product, -1));
  EXPECT_EQ(zero.v, 0.0L);
  EXPECT_LE(std::fabs(left), kThreshold * zero.err);
  EXPECT_LT(kThreshold * zero.err, 1e-6 * product) << "and no more";
  const Tracked overflown{1e39L, 0.0, 1e39, 0.0};
  EXPECT_TRUE(of_equal_products(Tracked{}, overflown).is_exact_zero());
}

}  // namespace
}  // namespace lossgate::reference
