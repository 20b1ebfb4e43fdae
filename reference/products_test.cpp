// SPDX-License-Identifier: Apache-2.0
#include "reference/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/given_numbers.h"
#include "reference/squares.h"

namespace lossgate::reference {
namespace {

constexpr double kInfinity = tracking::kInfinity;

class Products : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

/// The product in f32 from left to right.
template <std::size_t N>
double in_order(const std::array<double, N>& factors) {
  float result = 1.0F;
  for (double factor : factors) result *= static_cast<float>(factor);
  return result;
}

TEST_F(Products, CoverEveryOrderInWhichFourFactorsMayUnderflow) {
  const double most[] = {1e-40, 3e-30, 1e-16, 7.0, 3e12, 1e35};
  for (double a : most) {
    for (double b : most) {
      for (double c : most) {
        std::array<double, 4> factors = {a, b, c, 3.0};
        for (double& factor : factors) factor = static_cast<float>(factor);
        std::ranges::sort(factors);
        const Tracked expected =
            product(stored(factors[0]), stored(factors[1]), stored(factors[2]), stored(factors[3]));
        const double margin = expected.peak + kThreshold * expected.err;
        if (margin > max_finite(Dtype::f32)) continue;
        do {
          const double error = std::fabs(in_order(factors) - static_cast<double>(expected.v));
          EXPECT_LE(error, kThreshold * expected.err);
        } while (std::ranges::next_permutation(factors).found);
      }
    }
  }
}

TEST_F(Products, OfThreeFactorsLoseWhatTwoSmallOnesLoseTimesALargeOne) {
  // 1e-30 1e-30 is 0 in f32: all of the product is lost where it comes first.
  const Tracked all = product(stored(1e30), stored(1e-30), stored(1e-30));
  EXPECT_GE(kThreshold * all.err, static_cast<double>(all.v));
}

TEST_F(Products, LoseToUnderflowTimesWhatAFactorThatHasCancelledIsOffBy) {
  // Where 1e-30 1e-30 comes first, the others multiply what that loses by up to 1e24 1e30.
  const Tracked cancelled = {0.0L, 1e24, 1e30, 0.0};
  const Tracked all = product(stored(1e30), stored(1e-30), stored(1e-30), cancelled);
  EXPECT_GE(kThreshold * all.err, 1e-45 * 1e24 * 1e30);
  EXPECT_EQ(product(stored(1.0), stored(1.0), {0.0L, kInfinity, 1.0, 0.0}).err, kInfinity);
}

TEST_F(Products, FeelWhatOverflowsInSomeOrder) {
  EXPECT_LT((stored(1e30) * stored(1e-30) * stored(1e30)).peak, 2e30);
  EXPECT_GT(product(stored(1e30), stored(1e-30), stored(1e30)).peak, 9e59);
  EXPECT_GT(product(stored(1e20), stored(1e-30), stored(1e20), stored(1e10)).peak, 9e49);
  const Tracked five =
      product(stored(1e20), stored(1e-30), stored(1e20), stored(1e-10), stored(1e10));
  EXPECT_GT(five.peak, 9e49);
  EXPECT_LT(five.peak, 2e50);
}

TEST_F(Products, OfFiveFactorsLoseWhatTheFirstTwoLoseTimesTheOthers) {
  const Tracked tiny = product(stored(1e-30), stored(1e-15), stored(1e10), stored(1e9), stored(10));
  const double lost = std::fabs(in_order(std::array{1e-30, 1e-15, 1e10, 1e9, 10.0}) - 1e-25);
  EXPECT_GT(lost, 1e-27);
  EXPECT_LE(lost, kThreshold * tiny.err);
  EXPECT_LE(tiny.err, 10 * lost);
}

TEST_F(Products, MayBeWeightedWithinOneOfTheirFactors) {
  const double advantage = 3 * min_subnormal(Dtype::f32), ratio = 20.0;
  const Tracked part = stored(advantage) * stored(ratio), weight = stored(0.5);
  const float first = static_cast<float>(advantage) * 0.5F;
  const double error = std::fabs(double{first} * ratio - 0.5 * advantage * ratio);
  EXPECT_GT(error, kThreshold * (weight * part).err);
  EXPECT_LE(error, kThreshold * weighted_within(weight * part, part, stored(advantage)).err);
  EXPECT_EQ(weighted_within(weight * part, part, stored(0.0)).err, (weight * part).err);
  const Tracked infinity = stored(kInfinity);
  EXPECT_EQ(weighted_within(infinity, infinity, infinity).err, infinity.err);
  const Tracked open{part.v, part.err, part.peak, tracking::magnitude(part.v)};
  const double charged = weighted_within(weight * part, part, stored(advantage)).err;
  EXPECT_GT(weighted_within(weight * part, open, stored(advantage)).err, charged);
}

TEST_F(Products, MayTieWhereWhatTheyAreComparedWithIsWeightedFirst) {
  // 50 and 17 times the smallest number: 1.197 and 1.15 times the latter round to one number.
  const Tracked ratio = stored(1.197), bound = stored(1.15), advantage = stored(7e-44);
  const Tracked unweighted = compared_as_product(ratio, advantage, stored(1.0));
  const Tracked third = compared_as_product(ratio, advantage, stored(1.0) / stored(3.0));
  EXPECT_EQ(compare(unweighted, bound), Order::above);
  EXPECT_EQ(compare(third, bound), Order::undecided);
  EXPECT_EQ(compare(compared_as_product(ratio, stored(1.0), stored(1e-6)), bound), Order::above);
  // A weight above 1 loses nothing; either product may be the one that is compared.
  const Tracked fourfold = compared_as_product(ratio, advantage, stored(4.0));
  EXPECT_EQ(fourfold.err, unweighted.err);
  EXPECT_EQ(compared_as_product(stored(kInfinity), stored(0.0), stored(1.0)).err, 0.0);
}

TEST_F(Products, OfAZeroAndACoefficientThatOverflowsNeedNotBeZero) {
  EXPECT_TRUE(scaled_by(stored(0.0), stored(3.0), stored(4.0)).is_exact_zero());
  EXPECT_TRUE(scaled_by(stored(1.0), stored(0.0), stored(kInfinity)).is_exact_zero());
  EXPECT_GT(scaled_by(stored(0.0), stored(3.0), stored(2e38)).peak, 5e38);
  const double largest = max_finite(Dtype::f32);
  EXPECT_TRUE(scaled_by(stored(0.0), stored(largest), stored(1.0)).is_exact_zero());
}

TEST_F(Products, OfAnInfinityAndACoefficientThatMayVanishAreUndefined) {
  const Tracked infinite = stored(-kInfinity), tiny = stored(1e-30);
  EXPECT_TRUE(std::isnan(scaled_by(infinite, tiny, tiny).v)) << "0 in f32 before they meet";
  EXPECT_TRUE(std::isnan(scaled_by(infinite, stored(3.0), tiny, tiny).v));
  EXPECT_EQ(scaled_by(infinite, tiny, stored(3.0)).v, -kInfinity);
  EXPECT_TRUE(scaled_by(infinite, stored(0.0), tiny).is_exact_zero());
}

TEST_F(Products, FeelASumThatOverflowsBeforeItIsScaled) {
  const Tracked one = stored(1.0), weight = stored(1e-2), zero = stored(0.0);
  const Tracked term = product(weight, stored(1e38));
  EXPECT_LT((term + term + term).peak, 2e38);
  EXPECT_LT(scaled_sum(one, weight, term, term, term).peak, 2e38);
  EXPECT_GT(scaled_sum(one, weight, term + term, term, term).peak, 3.9e38);
  EXPECT_GT(scaled_sum(one, weight, term + term, term + term, -term).peak, 4.9e38);
  EXPECT_TRUE(scaled_sum(zero, weight, zero, zero, zero).is_exact_zero());
}

TEST_F(Products, OfASumThatUnderflowsNoFactorHasMadeTheErrorSmall) {
  // exp(-195) behind a sum of slopes: what underflow adds is no part of the sum that was large.
  const double tiny = std::exp(-195.0);
  const Tracked sum = stored(2.0) * computed(std::exp(-195.0L) / 2, 0.0);
  ASSERT_GT(sum.err / tiny, max_finite(Dtype::f32));
  const auto last = [&](double size) {
    return tracking::scaled_last(sum, 1.0, size, computed(std::exp(-195.0L), 0.0)).peak;
  };
  EXPECT_LE(last(tiny), 2.0 * sum.peak + 2.0);
  EXPECT_GT(last(tiny * 2e38), max_finite(Dtype::f32)) << "its own margin counts";
}

TEST_F(Products, MeetEachTermOfASumFirst) {
  const Tracked one = stored(1.0), weight = stored(3e38), zero = stored(0.0);
  const Cancelling<Tracked> terms{stored(-0.25), stored(1.25)};
  EXPECT_EQ(product(one, weight, terms.sum).peak, weight.peak);
  EXPECT_GT(distributed(terms, one, weight).peak, 3.7e38);
  EXPECT_GT(distributed(terms, weight).peak, 3.7e38);
  EXPECT_GT(distributed({terms.sum, {1.0L, 0.0, 1.0, 0.25}}, weight).peak, 3.7e38) << "open";
  EXPECT_EQ(distributed(terms, one, weight).v, product(one, weight, terms.sum).v);
  EXPECT_GT(distributed({stored(300.0), stored(300.0)}, weight, stored(1e-3)).peak, 8.9e40);
  EXPECT_TRUE(distributed({zero, terms.part}, one, weight).is_exact_zero());
  // What is multiplied last is 0, and what it meets is infinite by its factors, none of which is.
  EXPECT_GT(distributed({zero, terms.part}, stored(2.0), weight).peak, 5e38);
  EXPECT_TRUE(distributed({zero, terms.part}, stored(1e39), one).is_exact_zero());
  EXPECT_TRUE(distributed({zero, zero}, stored(2.0), weight).is_exact_zero()) << "a clamp's zero";
  EXPECT_TRUE(may_overflow(stored(2.0), weight) && !may_overflow(one, weight));
  EXPECT_TRUE(may_overflow(one, {3.4e38L, 1e37, 3.4e38, 0.0}));
  // g p x from left to right, p x = 1e-42 of x = -100.
  const float left = 1.0F / 32 * 1e-44F * -100.0F;
  const Tracked slope = distributed({stored(1e-42), stored(-100.0)}, stored(1.0 / 32));
  EXPECT_EQ(left, 0.0F);
  EXPECT_LE(static_cast<double>(slope.v), kThreshold * slope.err);
}

TEST_F(Products, RoundATermThatTheyMeetBeforeItCancels) {
  const Tracked one = stored(1.0), weight = stored(3.0), tiny = stored(1e-6), power = stored(1.25);
  const Cancelling<Tracked> whole{tiny, power}, apart{tiny, power, power};
  const double rounding = plain_arithmetic(Dtype::f32, "").roundoff;
  const auto more = [&](const auto&... factors) {
    return distributed(apart, factors...).err - distributed(whole, factors...).err;
  };
  EXPECT_NEAR(more(weight), 3.0 * 1.25 * rounding, 1e-12 * rounding);
  EXPECT_NEAR(more(one, weight), 3.0 * 1.25 * rounding, 1e-12 * rounding);
  EXPECT_NEAR(more(weight, -weight), 9.0 * 1.25 * rounding, 1e-12 * rounding);
  EXPECT_EQ(more(one), 0.0) << "by 1 nothing rounds";
  const Tracked open{0.5L, 0.0, 1.0, 0.5};
  EXPECT_NEAR(distributed(Cancelling<Tracked>{tiny, power, open}, weight).err -
                  distributed(whole, weight).err,
              3.0 * rounding, 1e-12 * rounding)
      << "the larger of the right answers rounds";
  EXPECT_EQ(more(-one, one), 0.0);
}

TEST_F(Products, FeelASumAtTheEndOfEveryTermThatIsOpen) {
  const Tracked one = stored(1.0), weight = stored(1e-2), zero = stored(0.0);
  const Tracked term = stored(2e36), open{2e36L, 0.0, 2e36, 1.5e36};
  EXPECT_LT(scaled_sum(one, weight, term, zero, zero).peak, 3e36);
  EXPECT_GT(scaled_sum(one, weight, open, zero, zero).peak, 3.4e38);
  EXPECT_GT(scaled_sum(one, weight, zero, open, zero).peak, 3.4e38);
  EXPECT_GT(scaled_sum(one, weight, zero, zero, open).peak, 3.4e38);
}

TEST_F(Products, FeelEitherFactorThatComesLast) {
  const Tracked upstream = stored(1e4), weight = stored(1e-3), zero = stored(0.0);
  const Tracked large = product(upstream, weight, stored(1e35));
  EXPECT_GT(scaled_sum(upstream, weight, large, zero, zero).peak, 9e38);
  // 1e-43 x 1e-3 is no number of f32, times 1e4 it would have been one.
  const Tracked small = product(upstream, weight, stored(1e-43));
  const double lost = static_cast<double>(small.v);
  EXPECT_GE(scaled_sum(upstream, weight, small, zero, zero).err, lost);
}

TEST_F(Products, LoseToUnderflowAsManyTimesAsThereAreTermsBeforeTheFactorsCome) {
  const Tracked upstream = stored(1e4), weight = stored(1e-3), zero = stored(0.0), x = stored(1.0);
  const double each = 1e4 * tracking::current->eta;
  const auto lost = [&](const Tracked& a, const Tracked& b, const Tracked& c) {
    return scaled_sum(upstream, weight, a, b, c).err - (a + b + c).err;
  };
  arithmetic_.roundoff = 0.0;  // what the factors cost, alone
  EXPECT_DOUBLE_EQ(lost(x, zero, zero), each);
  EXPECT_DOUBLE_EQ(lost(zero, x, x), 2.0 * each);
  EXPECT_DOUBLE_EQ(lost(x, x, x), 3.0 * each);
}

TEST_F(Products, ThatOverflowSpillToTheirOwnSideUnlessMoreWasOnTheWay) {
  const Tracked up = stored(1e39), down = stored(-1e39);
  EXPECT_TRUE(may_spill(up, true));
  EXPECT_FALSE(may_spill(up, false));
  EXPECT_TRUE(may_spill(down, false));
  EXPECT_FALSE(may_spill(down, true));
  EXPECT_TRUE(may_spill({1.0L, 0.0, 1e39, 0.0}, false));
  EXPECT_FALSE(may_spill(stored(1e38), true));
  EXPECT_FALSE(may_spill(stored(max_finite(Dtype::f32)), true)) << "it fits";
}

TEST_F(Products, LeaveOpenWhichOfTwoSquaresIsLargerWhereBothOverflowOrUnderflow) {
  const auto share = [](double a, double b) {
    return share_of_larger_square(stored(a), stored(b));
  };
  EXPECT_EQ(share(-3.0, 2.0).v, 1.0L);
  EXPECT_EQ(share(2.0, -3.0).v, 0.0L);
  EXPECT_EQ(share(2.0, -3.0).half, 0.0);
  EXPECT_EQ(share(1e20, 2e20).half, 0.5);
  EXPECT_EQ(share(1e10, 1e20).half, 0.0);
  EXPECT_EQ(share(1e-23, 2e-23).half, 0.5);
  EXPECT_EQ(share(0.0, 2e-23).half, 0.0);
  EXPECT_EQ(share(0x1p-62, 0x1p-63).half, 0.0);  // a square that is normal
  EXPECT_EQ(share(0x1.8p-64, 0x1p-64).half, 0.5);
  EXPECT_EQ(share(-0.5, 0.25).v, 1.0L);
  EXPECT_EQ(share(0.25, -0.5).v, 0.0L);
}

TEST_F(Products, LeaveOpenWhichSquareIsLargerWhereTheEndsOfTheFactorsOverflow) {
  const Tracked open{1.2e19L, 0.0, 1.2e19, 2e18}, far = stored(4e19);
  EXPECT_EQ(share_of_larger_square(stored(1.2e19), far).half, 0.0);
  EXPECT_EQ(share_of_larger_square(open, far).half, 0.5);
  EXPECT_EQ(share_of_larger_square(far, open).half, 0.5);
}

TEST_F(Products, PassTheWholeGradientAtABoundOfAClamp) {
  const Tracked bound = stored(1.0), below = stored(0.5), above = stored(2.0);
  for (const Tracked& within : {at_most(below, bound), at_most(bound, bound),
                                at_least(bound, bound), at_least(above, bound)}) {
    EXPECT_TRUE(is_unit(within));
  }
  EXPECT_TRUE(at_most(above, bound).is_exact_zero());
  EXPECT_TRUE(at_least(below, bound).is_exact_zero());
}

TEST_F(Products, LeaveTiesOpenWhereTheArithmeticSaysSo) {
  EXPECT_EQ(at_most(stored(1.0), stored(1.0)).half, 0.0);
  arithmetic_.ties_open = true;
  EXPECT_EQ(at_most(stored(1.0), stored(1.0)).half, 0.5);
  EXPECT_EQ(at_most(stored(1.0), stored(2.0)).half, 0.0);
}

TEST_F(Products, OfAStoredZeroAreThatZeroUnlessAMatrixProductMeetsAnInfinity) {
  const Tracked zero = stored(0.0), infinity = stored(kInfinity);
  EXPECT_TRUE(product(zero, infinity, stored(1.0)).is_exact_zero());
  EXPECT_TRUE(product(zero, infinity, stored(1.0), stored(1.0)).is_exact_zero());
  EXPECT_TRUE(weighed(zero, infinity).is_exact_zero());
  EXPECT_TRUE(weighed(zero, infinity - infinity).is_exact_zero());
  EXPECT_TRUE(std::isnan(multiplied(zero, infinity).v));
  EXPECT_TRUE(multiplied(zero, stored(3.0)).is_exact_zero());
  const Tracked anything = {1.0L, kInfinity, 1.0, 0.0};
  EXPECT_TRUE((zero * anything).is_exact_zero());
  EXPECT_EQ(multiplied(zero, anything).peak, kInfinity);
  EXPECT_EQ(multiplied(zero, anything).err, 0.0) << "0 or NaN, and no other number";
  EXPECT_TRUE(multiplied(zero, stored(max_finite(Dtype::f32))).is_exact_zero());
  const Tracked beyond = multiplied(stored(2.0), stored(1e39));
  EXPECT_EQ(beyond.peak, tracking::most(beyond));
}

TEST_F(Products, BehindAZeroTheUndefinedMayShowOrNot) {
  const Tracked zero = stored(0.0), undefined = stored(kInfinity) - stored(kInfinity);
  EXPECT_TRUE(silenced(zero, stored(kInfinity)).is_exact_zero());
  EXPECT_EQ(silenced(zero, undefined).v, 0.0L);
  EXPECT_EQ(silenced(zero, undefined).peak, kInfinity);
}

TEST_F(Products, OfAZeroAndTheUndefinedMayShowItOrNot) {
  const Tracked zero = stored(0.0), one = stored(1.0), two = stored(2.0);
  const Tracked undefined = stored(kInfinity) - stored(kInfinity);
  for (const Tracked& result : {product(zero, two, undefined), product(undefined, two, zero),
                                product(two, two, zero, undefined), scaled_by(zero, two, undefined),
                                scaled_by(undefined, two, zero)}) {
    EXPECT_EQ(result.v, 0.0L);
    EXPECT_EQ(result.peak, kInfinity);
  }
  const double largest = max_finite(Dtype::f32);
  EXPECT_EQ((zero * Tracked{largest, 0.0, kInfinity, 0.0}).peak, kInfinity) << "infinities met";
  EXPECT_TRUE((zero * Tracked{1e39L, 0.0, kInfinity, 0.0}).is_exact_zero()) << "it overflows";
  EXPECT_TRUE(product(zero, stored(kInfinity), one).is_exact_zero());
  EXPECT_TRUE(scaled_by(zero, two, one).is_exact_zero());
}

TEST_F(Products, AGradientThatIsMadeForOneHasLostWhatTheUpstreamMakesLarger) {
  const float w = 1.93e-22F, p = 1.93e-22F, upstream = 65536.0F, temperature = 0.05F;
  const Tracked above = stored(upstream), t = stored(temperature);
  const Tracked first = above * stored(w) * stored(p);
  const auto off_by = [](double found, const Tracked& x) {
    return std::fabs(found - static_cast<double>(x.v)) / (kThreshold * x.err);
  };
  const float tiny = w * p;  // 26.5 of the smallest number
  const Tracked cold = through_temperature(first, t, above);
  EXPECT_GT(off_by(tiny / temperature * upstream, first / t), 2.0);
  EXPECT_LE(off_by(tiny / temperature * upstream, cold), 1.0);
  const Tracked hot = made_for_one(through_temperature(first, stored(20.0), above), above);
  EXPECT_GT(off_by(tiny / 20.0F * upstream, first / stored(20.0)), 2.0);
  EXPECT_LE(off_by(tiny / 20.0F * upstream, hot), 1.0);
  EXPECT_EQ(through_temperature(first, stored(1.0), above).err, first.err) << "no division";
  EXPECT_EQ(back_to_logits(first, stored(1.0), above).err, first.err) << "nothing is stored";
  EXPECT_TRUE(made_for_one(stored(0.0), above).is_exact_zero());
  EXPECT_EQ(made_for_one(stored(kInfinity), above).err, 0.0);
}

TEST_F(Products, AGradientHasTheFormatInWhichTheQuotientsByTheTemperatureWereStored) {
  const Tracked slope = stored(1.0F / 3.0F), above = stored(1.0), temperature = stored(0.7F);
  const double found = round_to(Dtype::bf16, static_cast<double>(slope.v)) / 0.7F;
  const auto within = [&] {
    const Tracked g = through_temperature(slope, temperature, above);
    return std::fabs(found - static_cast<double>(g.v)) <= kThreshold * g.err;
  };
  EXPECT_FALSE(within());
  arithmetic_.stage(Stage::logits) = {unit_roundoff(Dtype::bf16), min_subnormal(Dtype::bf16)};
  const ArithmeticScope stores(arithmetic_);
  EXPECT_TRUE(within());
  EXPECT_GE(back_to_logits(slope, stored(1.0), above).err,
            unit_roundoff(Dtype::bf16) * static_cast<double>(slope.v));
}

TEST_F(Products, TheSlopeOfAHalfSquareMayLoseTheHalfThatWasFormed) {
  const float smallest = std::numeric_limits<float>::denorm_min(), scale = 65536.0F;
  const float half = 0.5F * smallest;
  const float by_autograd = half * scale + 0.5F * (smallest * scale);
  const Tracked slope = slope_of_half_square(stored(smallest)) * stored(scale);
  EXPECT_EQ(by_autograd, 0.5F * (smallest * scale)) << "half of it is lost";
  EXPECT_LE(std::fabs(by_autograd - static_cast<double>(slope.v)), slope.err);
  EXPECT_EQ(slope_of_half_square(stored(3.0)).err, tracking::current->eta);
  EXPECT_EQ(slope_of_half_square(stored(kInfinity)).err, 0.0);
  EXPECT_TRUE(slope_of_half_square(stored(0.0)).is_exact_zero());
}

TEST_F(Products, AWeightMayMeetALogarithmBeforeItsProbability) {
  const Tracked weight = stored(3e38), p{0.25L, 0.0, 0.25, 0.0}, x{-1.4L, 0.0, 1.4, 0.0};
  EXPECT_EQ(weighed_by(weight, p, x).peak, tracking::most(weight * x));
  EXPECT_EQ(weighed_by(weight, p, x).v, (weight * weighed(p, x)).v);
  EXPECT_DOUBLE_EQ(weighed_by(stored(0.25), stored(1e-44), stored(-80.0)).err -
                       (stored(0.25) * weighed(stored(1e-44), stored(-80.0))).err,
                   80.0 * 0x1p-149);
  EXPECT_TRUE(weighed_by(weight, stored(0.0), stored(-kInfinity)).is_exact_zero());
  EXPECT_TRUE(weighed_by(stored(0.0), p, x).is_exact_zero());
}

TEST_F(Products, MayBeOneRanksAlone) {
  const Tracked large{1.5e38L, 0.0, 1.5e38, 0.0}, small{1e38L, 0.0, 1e38, 0.0};
  EXPECT_EQ(averaged_over_parts(large, 1).peak, 1.5e38);
  EXPECT_EQ(averaged_over_parts(large, 3).peak, 3.0 * 1.5e38);
  const Tracked open{2e38L, 0.0, 2e38, 2e38};
  EXPECT_EQ(averaged_over_parts(open, 1).peak, 2e38);
  EXPECT_EQ(averaged_over_parts(open, 2).peak, 2.0 * 4e38);
  EXPECT_EQ(averaged_over_parts(stored(-kInfinity), 2).peak, 0.0);
  EXPECT_EQ(averaged_over_parts(small, 3).peak, 3.0 * 1e38);
  // 100 of the least numbers are 130 where 65 ranks are averaged, and the average is undone.
  EXPECT_EQ(averaged_over_parts(stored(0x1p-142), 65).err, 65.0 * 0x1p-149);
  EXPECT_EQ(averaged_over_parts(stored(0x1p-142), 1).err, 0.0);
  EXPECT_TRUE(averaged_over_parts(stored(0.0), 65).is_exact_zero());
  // What cancels on the way overflows as well.
  EXPECT_EQ(averaged_over_parts(Tracked{1.0L, 0.0, 2e38, 0.0}, 1).peak, 2e38);
  EXPECT_EQ(averaged_over_parts(Tracked{1.0L, 0.0, 2e38, 0.0}, 2).peak, 4e38);
  // Or in what a part is stored in, which may be narrower.
  EXPECT_EQ(averaged_over_parts(Tracked{4e4L, 0.0, 4e4, 0.0}, 2).peak, 8e4);
  EXPECT_TRUE(averaged_over_parts(Tracked{}, 3).is_exact_zero());
}

TEST(ProductsOfPlainNumbers, AreWhatTheyAre) {
  const Real infinity = kInfinity;
  EXPECT_EQ(product(2.0L, 3.0L), 6.0L);
  EXPECT_EQ(product(2.0L, 3.0L, 5.0L, 7.0L), 210.0L);
  EXPECT_EQ(scaled_by(2.0L, 3.0L, 5.0L), 30.0L);
  EXPECT_EQ(scaled_sum(9.0L, 9.0L, 2.0L, 3.0L, -7.0L), -2.0L);
  EXPECT_EQ(weighed(1.0L, 3.0L), 3.0L);
  EXPECT_EQ(weighed(0.0L, infinity), 0.0L);
  EXPECT_EQ(weighed_by(2.0L, 3.0L, 5.0L), 30.0L);
  EXPECT_EQ(weighed_by(2.0L, 0.0L, infinity), 0.0L);
  EXPECT_EQ(multiplied(2.0L, 3.0L), 6.0L);
  EXPECT_EQ(distributed(Cancelling<Real>{2.0L, 9.0L}, 3.0L, 4.0L), 24.0L);
  EXPECT_EQ(share_of_larger_square(-3.0L, 2.0L), 1.0L);
  EXPECT_EQ(share_of_larger_square(0.5L, -3.0L), 0.0L);
  EXPECT_EQ(share_of_larger_square(-2.0L, 2.0L), 0.5L);
}

}  // namespace
}  // namespace lossgate::reference
