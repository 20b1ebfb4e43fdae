// SPDX-License-Identifier: Apache-2.0
#include "reference/monotonic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/given_numbers.h"
#include "reference/rows.h"

namespace lossgate::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// log(exp(x) + exp(y))
struct Joined {
  template <class T>
  T operator()(const T& x, const T& y) const {
    return value_of(x) < value_of(y) ? T(y + log1p(exp(x - y))) : T(x + log1p(exp(y - x)));
  }
};

using Monotonic = TrackedTest;

TEST_F(Monotonic, FunctionsHaveTheBoundOfTheirStepsWhereTheseHaveOne) {
  const Tracked x = computed(1.0L, 1e-6), y = computed(2.0L, 1e-7);
  EXPECT_EQ(monotonic(Joined(), x, y).err, Joined()(x, y).err);
  EXPECT_EQ(monotonic(Joined(), 1.0L, 2.0L), Joined()(1.0L, 2.0L));
}

TEST_F(Monotonic, FunctionsAreHeldByTheirEndsWhereAStepHasNoBound) {
  for (const double err : {2.0, 20.0, 2000.0, 1e6}) {
    const Tracked x = computed(1.0L, err), y = computed(2.0L, err / 2);
    ASSERT_EQ(Joined()(x, y).err, kInfinity) << "it has not, step by step";
    const Tracked joined = monotonic(Joined(), x, y);
    EXPECT_EQ(joined.v, Joined()(1.0L, 2.0L));
    for (const double share : {-2.0, -1.0, -0.3, 0.3, 1.0, 2.0}) {
      const Real moved = Joined()(x.v + share * err, y.v + share * err / 2);
      EXPECT_LE(std::fabs(moved - joined.v), joined.err) << err << " times " << share;
    }
    EXPECT_LE(joined.err, 2.0 * err + 1e-5) << "no more than its arguments";
    EXPECT_LE(joined.peak, 2.0 * joined.err + 3.0) << "no step is said to overflow";
  }
}

TEST_F(Monotonic, FunctionsOfUndecidedNumbersAreAsWideAsWhatTheseMayBe) {
  const Tracked open = monotonic(Joined(), computed(0.0L, 0.0, 0.0, 5.0), stored(0.0));
  EXPECT_GE(open.half, Joined()(5.0L, 0.0L) - Joined()(0.0L, 0.0L));
  EXPECT_LT(open.half, 5.1);
}

TEST_F(Monotonic, FunctionsWithoutAValueAreAsTheirStepsLeaveThem) {
  const Tracked none = monotonic(Joined(), stored(-kInfinity), stored(-kInfinity));
  EXPECT_TRUE(std::isnan(none.v));
  EXPECT_EQ(none.half, 0.0) << "no branch was undecided";
  Row<Tracked> impossible(2);
  for (Tracked& a : impossible) a = stored(-kInfinity);
  EXPECT_EQ(log_sum_exp(impossible).log_sum.half, 0.0);
}

TEST_F(Monotonic, FunctionsOfWhatMayBeAnythingHaveNoBound) {
  EXPECT_EQ(monotonic(Joined(), computed(1.0L, kInfinity), stored(1.0)).err, kInfinity);
}

TEST_F(Monotonic, ALogarithmOfWhatHasALeastIsHeldByThat) {
  const Tracked sum = computed(20.0L, 15.0);
  ASSERT_EQ(log(sum).err, kInfinity);
  const Tracked held = log_from(sum, 1.0);
  EXPECT_GE(held.err, std::log(20.0));
  EXPECT_LE(held.err, std::log(20.0) + 1e-6) << "the sum is not less than 1";
  EXPECT_EQ(log_from(computed(20.0L, 1e-6), 1.0).err, log(computed(20.0L, 1e-6)).err);
  EXPECT_EQ(log_from(20.0L, 1.0), std::log(20.0L));
}

TEST_F(Monotonic, WhatFlattensIsHeldByTheSteepestSlopeThatItsArgumentMayMeet) {
  const auto holds = [](const auto& f, Real at, double err) {
    const double bound = f(computed(at, err)).err;
    for (const Real to : {at - err, at + err, at - err / 3, std::clamp(0.0L, at - err, at + err)}) {
      const Real moved = std::fabs(f(to) - f(at));  // by one error, not by T
      EXPECT_GE(bound, moved * (1.0L - 1e-9L)) << at << " within " << err;
    }
    EXPECT_LE(bound, err + 1e-6);
  };
  for (const double err : {0.06, 0.6, 6.0, 60.0}) {
    for (const Real at : {-30.0L, -2.0L, 0.0L, 1.0L, 9.0L}) {
      holds([](const auto& x) { return sigmoid(x); }, at, err);
      holds([](const auto& x) { return tanh(x); }, at, err);
    }
  }
  EXPECT_LE(sigmoid(computed(-1e9L, 60.0)).err, 2.0 * arithmetic_.eta);
}

// ---- rows ---------------------------------------------------------------------------------------

Row<Tracked> row_of(std::initializer_list<Tracked> numbers) {
  Row<Tracked> row(static_cast<Eigen::Index>(numbers.size()));
  std::ranges::copy(numbers, row.begin());
  return row;
}

TEST_F(Monotonic, ALogSumExpMovesNoFartherThanItsRow) {
  for (const double err : {0.5, 3.0, 50.0, 1e4}) {
    const auto x = row_of({computed(4.0L, err), computed(3.0L, err), computed(-1e9L, 60.0 + err)});
    const Tracked whole = joined(log_sum_exp(x));
    EXPECT_GE(whole.err, err) << "all of them may be off alike";
    EXPECT_LE(whole.err, kThreshold * err + 1e-5);
    EXPECT_LE(whole.peak, 1.001e9) << "no shifted exp is more than 1";
  }
}

TEST_F(Monotonic, ASumOfExponentialsThatHasNoDigitIsNotLessThanItsLargestTerm) {
  arithmetic_ = plain_arithmetic(Dtype::bf16, "");
  arithmetic_.sum.order = SumOrder::sequential;
  Row<Tracked> x(1000);
  for (Tracked& a : x) a = stored(0.0);
  const Tracked whole = joined(log_sum_exp(x));
  EXPECT_GE(whole.err, std::log(1000.0)) << "1 + 1 + ... ends at 256 in bf16";
  EXPECT_LE(whole.err, 20.0);
}

TEST_F(Monotonic, AShareIsAtMostOneHoweverFarItsPartMayBeOff) {
  const Tracked far = computed(-2.0L, 30.0, 40.0);
  ASSERT_GT(exp(far).err, 1e20);
  const Tracked share = exp_of_share(far);
  EXPECT_GE(share.err, 1.0 - std::exp(-2.0)) << "it may be all";
  EXPECT_LE(share.err, 1.001);
  EXPECT_LE(share.peak, far.peak);
  const Tracked near = computed(-2.0L, 1e-6);
  EXPECT_EQ(exp_of_share(near).err, exp(near).err);
  EXPECT_EQ(exp_of_share(-2.0L), std::exp(-2.0L));
}

}  // namespace
}  // namespace lossgate::reference
