// SPDX-License-Identifier: Apache-2.0
#include "reference/sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "reference/precise.h"
#include "reference/textbook.h"

namespace lossgate::reference {
namespace {

constexpr double kU = 0x1p-24;

std::vector<double> random_terms(std::size_t n, bool one_sign, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::lognormal_distribution<double> size(0.0, 3.0);
  std::vector<double> terms(n);
  for (double& term : terms) {
    term = static_cast<float>(size(engine));
    if (!one_sign && engine() % 2 == 0) term = -term;
  }
  return terms;
}

Precise exact_sum(const std::vector<double>& terms) {
  Precise sum;
  for (double term : terms) sum += Precise(term);
  return sum;
}

template <class S>
S total(const std::vector<double>& terms, std::int64_t extent) {
  Sum<S> sum(extent);
  for (double term : terms) sum.add(Entry<S>::stored(term, -1));
  return sum.value();
}

TEST(CompensatedSum, ErrsByOneRoundingWhateverTheOrder) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const auto terms = random_terms(5000, seed % 2 == 0, seed);
    CompensatedSum sum;
    double magnitudes = 0.0;
    for (double term : terms) {
      sum.add(term);
      magnitudes += std::fabs(term);
    }
    const Precise exact = exact_sum(terms);
    const double second_order = 5000.0 * 5000.0 * kRealRoundoff * kRealRoundoff * magnitudes;
    const Real allowed = kRealRoundoff * std::fabs(exact.number().toLDouble()) + second_order;
    EXPECT_LE(distance(Precise(sum.value()), exact), allowed);
  }
}

TEST(CompensatedSum, KeepsWhatALargeTermWouldSwallow) {
  CompensatedSum sum;
  for (Real term : {1.0L, 1e30L, 1.0L, -1e30L}) sum.add(term);
  EXPECT_EQ(sum.value(), 2.0L);
}

TEST(CompensatedSum, LetsInfinitiesAndNanThrough) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  CompensatedSum infinite;
  infinite.add(1.0L);
  infinite.add(-kInfinity);
  infinite.add(3.0L);
  EXPECT_EQ(infinite.value(), -kInfinity);
  infinite.add(kInfinity);
  EXPECT_TRUE(std::isnan(infinite.value()));
}

struct Order_ {
  SumRule rule;
  double growth;  ///< of 1000 terms
};

/// log2(1000) rounds up to 10; 1000/8 + 3; 1000/16 rounded up + 4; 999.
const Order_ kOrders[] = {{{kU, SumOrder::pairwise, 1.0}, 10.0},
                          {{kU, SumOrder::lanes, 8.0}, 128.0},
                          {{kU, SumOrder::blocked, 16.0}, 67.0},
                          {{kU, SumOrder::sequential, 1.0}, 999.0},
                          {{kU, SumOrder::unknown, 1.0}, 999.0}};

TEST(Sum, IsChargedByTheDeclaredOrder) {
  for (const Order_& order : kOrders) {
    EXPECT_EQ(order.rule.growth(1000.0), order.growth);
    EXPECT_EQ(order.rule.growth(1.0), 0.0);
    Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
    arithmetic.sum = order.rule;
    const ArithmeticScope scope(arithmetic);
    const Tracked sum = total<Tracked>(std::vector<double>(1000, 1.0), 1000);
    EXPECT_EQ(sum.v, 1000.0L);
    EXPECT_EQ(sum.err, order.growth * kU * 1000.0 + kU * 1000.0);
  }
}

TEST(Sum, ContainsRealSumsInTheDeclaredOrder) {
  double tightest = 0.0;
  for (const Order_& order : kOrders) {
    Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
    arithmetic.sum = order.rule;
    const ArithmeticScope scope(arithmetic);
    for (unsigned seed = 0; seed < 300; ++seed) {
      const std::size_t n = 1 + seed * 7;
      const auto terms = random_terms(n, seed % 2 == 0, seed);
      const Tracked bound = total<Tracked>(terms, static_cast<std::int64_t>(n));
      const Textbook actual = total<Textbook>(terms, static_cast<std::int64_t>(n));
      const Real error = std::fabs(actual.v - bound.v);
      EXPECT_LE(error, bound.err) << "order " << static_cast<int>(order.rule.order) << ", " << n;
      if (n > 1) tightest = std::max(tightest, static_cast<double>(error) / bound.err);
    }
  }
  EXPECT_GT(tightest, 0.03);
}

TEST(Sum, NeedsTheDeclaredOrder) {
  // An f32 sum in 8 lanes of 2^18 equal terms is far outside the bound of a pairwise one.
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  const std::vector<double> terms(1 << 18, static_cast<double>(0.1F));
  Tracked pairwise;
  {
    const ArithmeticScope scope(arithmetic);
    pairwise = total<Tracked>(terms, 1 << 18);
  }
  arithmetic.sum = {kU, SumOrder::lanes, 8.0};
  const ArithmeticScope scope(arithmetic);
  const Textbook actual = total<Textbook>(terms, 1 << 18);
  const Real error = std::fabs(actual.v - pairwise.v);
  EXPECT_GT(error, kThreshold * pairwise.err);
  EXPECT_LT(error, total<Tracked>(terms, 1 << 18).err);
}

TEST(Sum, CompoundsRoundingsThatAreNoLongerSmall) {
  // 4096 terms one after the other in bf16: to first order 16 times the sum, in truth (1 + u)^4095.
  Arithmetic arithmetic = plain_arithmetic(Dtype::bf16, "");
  arithmetic.sum = {unit_roundoff(Dtype::bf16), SumOrder::sequential, 1.0};
  const ArithmeticScope scope(arithmetic);
  EXPECT_GT(total<Tracked>(std::vector<double>(4096, 1.0), 4096).err, 4096.0 * 1e6);
}

class TrackedSum : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

TEST_F(TrackedSum, OfNothingIsAnExactZero) {
  EXPECT_TRUE(Sum<Tracked>(0).value().is_exact_zero());
  Sum<Tracked> zeros(100);
  for (int i = 0; i < 100; ++i) zeros.add(Tracked{});
  EXPECT_TRUE(zeros.value().is_exact_zero());
  EXPECT_TRUE(zeros.accumulated(3).is_exact_zero());
}

TEST_F(TrackedSum, OfOneTermIsThatTerm) {
  Sum<Tracked> sum(100);
  sum.add({3.0L, 0.25, 7.0, 0.5});
  const Tracked value = sum.value();
  EXPECT_EQ(value.v, 3.0L);
  EXPECT_EQ(value.err, 0.25);
  EXPECT_EQ(value.peak, 7.0);
  EXPECT_EQ(value.half, 0.5);
}

TEST_F(TrackedSum, KeepsErrorsHalfWidthsAndThePeakOfBothSigns) {
  Sum<Tracked> sum(4);
  sum.add({3.0L, 0.25, 3.0, 0.5});
  sum.add({4.0L, 0.25, 4.0, 0.25});
  sum.add({-6.0L, 0.125, 6.0, 0.0});
  const Tracked value = sum.value();
  EXPECT_EQ(value.v, 1.0L);
  EXPECT_EQ(value.half, 0.75);
  EXPECT_EQ(value.peak, 7.75 + kThreshold * value.err) << "3 + 4 may be formed on the way";
  EXPECT_GE(value.err, 0.625 + 2.0 * kU * 13.0 + kU * 1.0);
  EXPECT_LE(value.err, 0.625 + 2.0 * kU * (13.0 + 0.75 + 0.625) + kU * (1.0 + 0.75));
}

TEST_F(TrackedSum, NeverChargesMoreRoundingsThanOtherTerms) {
  Sum<Tracked> sum(1 << 20);
  sum.add({1.0L, 0.0, 1.0, 0.0});
  sum.add({1.0L, 0.0, 1.0, 0.0});
  EXPECT_EQ(sum.value().err, kU * 2.0 + kU * 2.0);
}

TEST_F(TrackedSum, RoundsNothingWhereTheArithmeticDoesNot) {
  const Arithmetic exact;
  const ArithmeticScope scope(exact);
  EXPECT_EQ(total<Tracked>({1.0, 0x1p-40, -3.0}, 3).err, 0.0);
}

TEST_F(TrackedSum, AccumulatedOverPartsIsChargedAtThatStage) {
  Sum<Tracked> sum(2);
  sum.add({3.0L, 0.0, 3.0, 0.0});
  sum.add({-1.0L, 0.0, 1.0, 0.0});
  EXPECT_EQ(sum.accumulated(1).err, sum.value().err);
  arithmetic_.stage(Stage::accumulate) = {.roundoff = 0x1p-8, .eta = 0x1p-133};
  const double expected = sum.value().err + 5.0 * (0x1p-8 * 4.0 + 0x1p-133);
  EXPECT_EQ(sum.accumulated(4).err, expected);
  arithmetic_.stage(Stage::accumulate) = {.roundoff = 0.0, .eta = 0.5};
  EXPECT_EQ(sum.accumulated(2).err, sum.value().err + 3.0 * 0.5);
}

TEST_F(TrackedSum, IsHeldAgainstTheRangeByItsFarEnd) {
  Sum<Tracked> sum(1), open(1);
  sum.add({2e38L, 0.0, 2e38, 0.0});
  open.add({2e38L, 0.0, 2e38, 1e38});
  const Tracked half{0.5L, 0.0, 0.5, 0.0};
  EXPECT_EQ(sum.scaled(half).peak, 2.0 * 2e38);
  EXPECT_EQ(open.scaled(half).peak, 2.0 * 3e38);
}

TEST_F(TrackedSum, MayBeScaledLast) {
  Sum<Tracked> sum(3);
  EXPECT_TRUE(sum.scaled(Tracked{0.5L, 0.0, 0.5, 0.0}).is_exact_zero());
  for (double term : {1e38, 1e38, -1e38}) sum.add({term, 0.0, 1e38, 0.0});
  const Tracked half{0.5L, 0.0, 0.5, 0.0}, four{4.0L, 0.0, 4.0, 0.0};
  EXPECT_EQ(sum.scaled(half).v, sum.value().v);
  EXPECT_LT(sum.scaled(four).peak, 2.1e38);
  EXPECT_GT(sum.scaled(half, four).peak, 3.9e38);
  EXPECT_EQ(sum.accumulated(1, half, four).err, sum.scaled(half, four).err);
  EXPECT_EQ(sum.accumulated(1, half, four).peak, sum.scaled(half, four).peak);
}

TEST_F(TrackedSum, LosesToUnderflowAsManyTimesAsItHasTermsBeforeTheFactorsCome) {
  Sum<Tracked> sum(4);
  for (double term : {1.0, 1.0, 0.0, -1.0}) sum.add({term, 0.0, std::fabs(term), 0.0});
  const Tracked half{0.5L, 0.0, 0.5, 0.0}, four{4.0L, 0.0, 4.0, 0.0};
  arithmetic_.eta = 0.25;
  EXPECT_EQ(sum.scaled(half, four).err, sum.value().err + 3.0 * 4.0 * 0.25);
}

TEST_F(TrackedSum, MayBeAddedUpByAnotherRule) {
  const SumRule matmul{0x1p-8, SumOrder::sequential, 1.0};
  Sum<Tracked> sum(100, &matmul);
  for (int i = 0; i < 100; ++i) sum.add({1.0L, 0.0, 1.0, 0.0});
  EXPECT_DOUBLE_EQ(sum.value().err, std::expm1(99.0 * 0x1p-8) * 100.0 + kU * 100.0);
}

TEST(MeanOfASum, MayOverflowBeforeItIsDividedWhereThatIsNotRuledOut) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  for (const bool last : {false, true}) {
    arithmetic.divides_last = last;
    const ArithmeticScope scope(arithmetic);
    for (const double term : {0.4, 0.6}) {
      const Real x = static_cast<Real>(term * tracking::largest) / 2.0L;
      Sum<Tracked> terms(2);
      for (int i = 0; i < 2; ++i) terms.add({x, 0.0, static_cast<double>(x), 0.0});
      const Tracked mean = divided_last(terms.value(), terms, 2.0);
      EXPECT_EQ(mean.peak > tracking::largest, last && term > 0.5) << term;
      EXPECT_EQ(mean.err, terms.value().err);
    }
  }
}

TEST(MeanOfAll, HasLostToUnderflowWhatGrowsWithTheMeanOfThoseThatCount) {
  const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(arithmetic);
  const float x = 3.0F * std::numeric_limits<float>::denorm_min();
  const double error = std::fabs(double{x / 5.0F * 5.0F} - double{x});
  const Tracked mean{x, 0.0, x, 0.0};
  EXPECT_GT(error, 0.0);
  EXPECT_LE(error, kThreshold * made_of_mean_of_all(mean, 5.0).err);
  EXPECT_LT(made_of_mean_of_all(mean, 5.0).err, 10.0 * x);
  EXPECT_TRUE(made_of_mean_of_all(Tracked{}, 5.0).is_exact_zero());
}

TEST(StoredParts, ErrByTheirSizesAndThoseOfTheirSums) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  const double u = unit_roundoff(Dtype::bf16);
  arithmetic.stage(Stage::gradient) = {u, 0.0};
  const ArithmeticScope scope(arithmetic);
  const auto rounded = [](double x) { return round_to(Dtype::bf16, x); };
  double worst = 0.0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto terms = random_terms(9, false, seed);
    Sum<Tracked> sum(9);
    double parts = 0.0;
    for (double term : terms) {
      sum.add(Entry<Tracked>::stored(term, -1));
      parts = rounded(parts + rounded(term));
    }
    const Tracked bound = sum.in_stored_parts(sum.value(), Stage::gradient, 9);
    const double error = std::fabs(parts - static_cast<double>(bound.v));
    EXPECT_LE(error, kThreshold * bound.err);
    worst = std::max(worst, error / (kThreshold * u * std::fabs(static_cast<double>(bound.v))));
    EXPECT_EQ(sum.in_stored_parts(sum.value(), Stage::logits, 9).err, sum.value().err);
  }
  EXPECT_GT(worst, 1.0) << "a store of the sum alone is too little";
}

TEST(SumInAnyOrder, IsAsWrongAsItsWorstOrder) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(single);
  const auto stored = [](double x) { return Entry<Tracked>::stored(x, -1); };
  const std::array terms{stored(1000.0), stored(-1000.5), stored(-10.0), stored(10.25)};
  const Tracked sum = sum_in_any_order(terms);
  EXPECT_EQ(sum.v, -0.25L);
  double worst = 0.0, peak = 0.0;
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  do {
    const Tracked &a = terms[order[0]], &b = terms[order[1]], &c = terms[order[2]],
                  &d = terms[order[3]];
    for (const Tracked& one : {((a + b) + c) + d, (a + b) + (c + d)}) {
      worst = std::max(worst, one.err);
      peak = std::max(peak, one.peak);
    }
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(sum.err, worst);
  EXPECT_EQ(sum.peak, peak);
  EXPECT_GT(sum.err, 1000.0 * ((terms[0] + terms[1]) + (terms[2] + terms[3])).err);
}

TEST(SumInAnyOrder, OfOneTermIsTheTerm) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(single);
  const Tracked alone = sum_in_any_order(std::array{Entry<Tracked>::stored(3.0, -1)});
  EXPECT_EQ(alone.v, 3.0L);
  EXPECT_EQ(alone.err, 0.0);
}

}  // namespace
}  // namespace lossgate::reference
