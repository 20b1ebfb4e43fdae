// SPDX-License-Identifier: Apache-2.0
#include "reference/computed_once.h"

#include <gtest/gtest.h>

namespace lossgate::reference {
namespace {

class ComputedOnce : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

Tracked with_error(double err) { return {-1.0L, err, 1.0, 0.0}; }

constexpr Tracked kApart{2.0L, 1.0, 3.0, 0.0}, kTogether{2.0L, 0.25, 3.0, 0.0};

TEST_F(ComputedOnce, ReachesTheResultThroughItsDerivativeAndItsSquare) {
  ErrorsOfOnce errors(1);
  errors.add(with_error(0x1p-6), -4.0L, 0.0L);
  errors.add(with_error(0x1p-5), 1.0L, -2.0L);
  arithmetic_.roundoff = 0.0;
  const Tracked result = errors.narrowed(kApart, kTogether);
  EXPECT_EQ(result.err, 0.25 + 4.0 * 0x1p-6 + 0x1p-5 + 2.0 * 0x1p-10);
  EXPECT_EQ(result.v, kApart.v);
  EXPECT_EQ(result.peak, kApart.peak);
}

TEST_F(ComputedOnce, IsRoundedInEachPlaceEvenWhereNothingIsLeftOfItInTheWhole) {
  ErrorsOfOnce few(1), many(1025);
  for (ErrorsOfOnce* errors : {&few, &many}) errors->add(with_error(0x1p-6), 0.0L, 0.0L);
  arithmetic_.roundoff = 0x1p-20;
  arithmetic_.sum = {0x1p-16, SumOrder::sequential, 1.0};
  arithmetic_.math.exp = 3.0;
  const double of_operations = 2.0 * 16.0 * 3.0 * 0x1p-20;
  EXPECT_DOUBLE_EQ(few.narrowed(kApart, kTogether).err, 0.25 + of_operations);
  EXPECT_DOUBLE_EQ(many.narrowed(kApart, kTogether).err, 0.25 + of_operations + 2.0 * 0x1p-6);
  arithmetic_.math.exp_slope = 4.0;
  const double of_exp2 = 2.0 * 16.0 * 7.0 * 0x1p-20;
  EXPECT_DOUBLE_EQ(few.narrowed(kApart, kTogether).err, 0.25 + of_exp2);
}

TEST_F(ComputedOnce, NeverWidensWhatIsKnownOfItsPlaces) {
  ErrorsOfOnce errors(1);
  errors.add(with_error(0x1p-6), 64.0L, 0.0L);
  EXPECT_EQ(errors.narrowed(kApart, kTogether).err, kApart.err);
}

TEST_F(ComputedOnce, SaysNothingWhereABranchIsOpenOrADerivativeHasNoEnd) {
  ErrorsOfOnce open(1), closed(1), endless(1), undefined(1);
  arithmetic_.roundoff = 0.0;
  open.add({-1.0L, 0.0, 1.0, 1e-9}, 0.0L, 0.0L);
  closed.add(with_error(0.5), 0.0L, 0.0L);
  closed.add({-HUGE_VALL, 0.0, 0.0, 0.0}, 0.0L, 0.0L);
  endless.add(with_error(tracking::kInfinity), 0.0L, 0.0L);
  undefined.add(with_error(0.049), tracking::kNan, 0.0L);
  EXPECT_EQ(open.narrowed(kApart, kTogether).err, kApart.err);
  EXPECT_EQ(closed.narrowed(kApart, kTogether).err, kTogether.err);
  EXPECT_EQ(endless.narrowed(kApart, kTogether).err, kApart.err);
  EXPECT_EQ(undefined.narrowed(kApart, kTogether).err, kApart.err);
}

TEST_F(ComputedOnce, ComesOutWithoutItsErrorAndElseAsItWas) {
  Row<Tracked> row(3);
  row << Tracked{-1.0L, 0.5, 7.0, 0.25}, Tracked{-HUGE_VALL, 0.0, 0.0, 0.0},
      Tracked{1e400L, tracking::kInfinity, 1.0, 0.0};
  const Row<Tracked> taken = as_computed(row);
  EXPECT_EQ(taken[0].err, 0.0);
  EXPECT_EQ(taken[0].v, -1.0L);
  EXPECT_EQ(taken[0].peak, 7.0);
  EXPECT_EQ(taken[0].half, 0.25);
  EXPECT_TRUE(tracking::is_stored_infinity(taken[1]));
  EXPECT_FALSE(tracking::is_stored_infinity(taken[2])) << "beyond double, not infinite";
}

}  // namespace
}  // namespace lossgate::reference
