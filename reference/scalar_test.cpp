// SPDX-License-Identifier: Apache-2.0
#include "reference/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/given_numbers.h"

/// Rule B6: what branches make of tracked numbers.
namespace lossgate::reference {
namespace {

constexpr double kU = 0x1p-24;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using ScalarTest = TrackedTest;

TEST_F(ScalarTest, ComparisonsAreDecidedBeyondTTimesTheirBound) {
  const Tracked zero = stored(0.0);
  EXPECT_EQ(compare(computed(-1.0L, 0.49), zero), Order::below);
  EXPECT_EQ(compare(computed(1.0L, 0.49), zero), Order::above);
  EXPECT_EQ(compare(computed(1.0L, 0.51), zero), Order::undecided);
  EXPECT_EQ(compare(computed(1.0L, 0.25), computed(0.0L, 0.26)), Order::undecided);
  EXPECT_EQ(compare(computed(1.0L, 0.25, 1.0, 0.51), zero), Order::undecided);
  EXPECT_EQ(compare(stored(2.0), stored(2.0)), Order::equal);
  EXPECT_EQ(compare(computed(2.0L, kU), stored(2.0)), Order::undecided);
  EXPECT_EQ(compare(stored(kInfinity), stored(kInfinity)), Order::equal);
  EXPECT_EQ(compare(stored(-kInfinity), stored(1.0)), Order::below);
  EXPECT_EQ(compare(stored(kNan), stored(1.0)), Order::undecided);
}

TEST_F(ScalarTest, ADecidedSelectionForgetsTheOtherSide) {
  const Tracked overflowed = exp(stored(1000.0)), limit = stored(10.0);
  for (const Tracked& x :
       {minimum(overflowed, limit), minimum(limit, overflowed), clamp(overflowed, -limit, limit)}) {
    EXPECT_EQ(x.v, 10.0L);
    EXPECT_EQ(x.err, 0.0);
    EXPECT_EQ(x.peak, 10.0);
  }
  EXPECT_EQ(maximum(computed(3.0L, 0.5), limit).err, 0.0);
  EXPECT_EQ(maximum(computed(30.0L, 0.5), limit).err, 0.5);
  EXPECT_EQ(clamp(stored(-30.0), -limit, limit).v, -10.0L);
}

TEST_F(ScalarTest, AnUndecidedSelectionAddsTheDistance) {
  const Tracked near = computed(10.25L, 0.5, 20.0), limit = stored(10.0);
  for (const Tracked& x : {minimum(near, limit), minimum(limit, near)}) {
    EXPECT_EQ(x.v, 10.0L);
    EXPECT_EQ(x.err, 0.5 + 0.25);
    EXPECT_EQ(x.peak, 20.0);
  }
  EXPECT_EQ(maximum(near, limit).v, 10.25L);
  EXPECT_EQ(maximum(limit, near).err, 0.75);
}

TEST_F(ScalarTest, NanWinsEverySelection) {
  const Tracked nan = stored(kNan), one = stored(1.0);
  EXPECT_TRUE(is_nan(minimum(nan, one)) && is_nan(minimum(one, nan)));
  EXPECT_TRUE(is_nan(maximum(nan, one)) && is_nan(maximum(one, nan)));
  EXPECT_TRUE(is_nan(clamp(nan, -one, one)));
  EXPECT_TRUE(std::isnan(minimum<Real>(1.0L, kNan)) && std::isnan(maximum<Real>(kNan, 1.0L)));
  EXPECT_EQ(nan.err, kInfinity);
}

TEST_F(ScalarTest, DerivativesOfClampAreClosedIntervals) {
  const Tracked edge = stored(20.0);
  EXPECT_EQ(clamp_slope(edge, -edge, edge).v, 1.0L);
  EXPECT_EQ(clamp_slope(-edge, -edge, edge).v, 1.0L);
  EXPECT_EQ(clamp_slope(stored(19.0), -edge, edge).v, 1.0L);
  EXPECT_TRUE(clamp_slope(stored(20.5), -edge, edge).is_exact_zero());
  EXPECT_TRUE(clamp_slope(stored(-20.5), -edge, edge).is_exact_zero());
  EXPECT_EQ(share_of_maximum(edge, edge).v, 0.5L);
  EXPECT_EQ(share_of_maximum(edge, stored(19.0)).v, 1.0L);
  EXPECT_TRUE(share_of_maximum(stored(19.0), edge).is_exact_zero());
}

TEST_F(ScalarTest, AnUndecidedEndOfAClampPassesOnAnythingUpToTheWhole) {
  const Tracked edge = stored(20.0), near = computed(20.0L, 1e-6), wide = computed(0.0L, 30.0);
  for (const Tracked& slope : {clamp_slope(near, -edge, edge), clamp_slope(-near, -edge, edge)}) {
    EXPECT_EQ(slope.v, 0.5L);
    EXPECT_EQ(slope.half, 0.5);
    EXPECT_EQ(slope.peak, 1.0);
  }
  const Tracked both = clamp_slope(wide, -edge, edge);
  EXPECT_EQ(both.v, 0.25L);
  EXPECT_EQ(both.half, 0.75);
  EXPECT_EQ(both.peak, tracking::most(both));
  EXPECT_EQ(clamp_slope(edge, edge, edge).v, 1.0L);
}

TEST_F(ScalarTest, AnUndecidedDerivativeIsAnInterval) {
  const Tracked slope = at_most(computed(20.0L, 1e-6), stored(20.0));
  EXPECT_EQ(slope.v, 0.5L);
  EXPECT_EQ(slope.half, 0.5);
  EXPECT_EQ(slope.peak, 1.0);
  const Tracked gradient = slope * stored(-3.0);
  EXPECT_EQ(gradient.v, -1.5L);
  EXPECT_EQ(gradient.half, 1.5);
}

}  // namespace
}  // namespace lossgate::reference
