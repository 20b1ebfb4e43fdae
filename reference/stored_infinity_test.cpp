// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "reference/given_numbers.h"
#include "reference/sums.h"

/// Rule B2: what is made of infinities that were stored.
namespace lossgate::reference {
namespace {

constexpr double kInfinity = tracking::kInfinity;

/// In f32.
class StoredInfinity : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

TEST_F(StoredInfinity, IsExact) {
  const Tracked low = stored(-kInfinity);
  EXPECT_EQ(low.err, 0.0);
  EXPECT_EQ((low + stored(1.0)).v, -kInfinity);
  EXPECT_EQ((low + stored(1.0)).err, 0.0);
  EXPECT_TRUE(exp(low).is_exact_zero());
  EXPECT_EQ(exp(stored(kInfinity)).v, kInfinity);
  // Infinities of both signs make a NaN, about which nothing can be said.
  const Tracked undefined = low - low;
  EXPECT_TRUE(std::isnan(undefined.v));
  EXPECT_EQ(undefined.err, kInfinity);
}

TEST_F(StoredInfinity, LessAnotherIsSilencedByAZeroOrNot) {
  const Tracked undefined = stored(kInfinity) - stored(kInfinity), zero;
  for (const Tracked& product : {zero * undefined, undefined * zero}) {
    EXPECT_EQ(product.v, 0.0L);
    EXPECT_EQ(product.err, 0.0);
    EXPECT_EQ(product.peak, kInfinity) << "NaN is as right";
  }
  EXPECT_TRUE((zero * stored(kInfinity)).is_exact_zero());
  EXPECT_TRUE((zero * computed(1e39L, 1e30)).is_exact_zero());
}

TEST_F(StoredInfinity, KeepsOpenWhatItMetWas) {
  const Tracked infinity = stored(kInfinity), open = computed(3.0L, 0.0, 3.0, 0.5);
  EXPECT_EQ((infinity + open).half, 0.5);
  EXPECT_EQ((open + infinity).half, 0.5);
}

TEST_F(StoredInfinity, TimesWhatMayBeZeroIsUndefined) {
  const Tracked infinity = stored(kInfinity);
  for (const Tracked& open : {computed(1e-9L, 1e-9), computed(-1e-9L, 1e-9), computed(0.0L, 1e-45),
                              computed(0.25L, 0.0, 0.5, 0.25)}) {
    EXPECT_TRUE(std::isnan((infinity * open).v));
    EXPECT_TRUE(std::isnan((open * infinity).v));
    EXPECT_EQ((infinity * open).err, kInfinity);
  }
  EXPECT_EQ((infinity * computed(-1e-9L, 1e-10)).v, -kInfinity);
  EXPECT_TRUE((infinity * Tracked{}).is_exact_zero());
}

TEST_F(StoredInfinity, HasThePeakOfTheFiniteNumbersThatItMet) {
  const Tracked low = stored(-kInfinity);
  const Tracked far = low - computed(1e30L, 1e25);
  EXPECT_GE(far.peak, 1e30 + kThreshold * 1e25);
  EXPECT_LT(far.peak, 1.1e30);
  EXPECT_TRUE(exp(far).is_exact_zero());
  // In f32, -infinity less what overflows is NaN: no zero that would annihilate.
  const Tracked spoilt = exp(low - computed(1e39L, 0.0));
  EXPECT_EQ(spoilt.v, 0.0L);
  EXPECT_FALSE(spoilt.is_exact_zero());
  EXPECT_GE((spoilt * stored(3.0)).peak, 1e39);
  EXPECT_FALSE(exp(low - computed(3e38L, 1e38)).is_exact_zero());
  EXPECT_TRUE(exp(low - stored(max_finite(Dtype::f32))).is_exact_zero());
}

TEST_F(StoredInfinity, IsAsExactInASumOfManyAsInOneOfTwo) {
  const Tracked low = stored(-kInfinity), high = stored(kInfinity), open = computed(3.0L, 0.1);
  const auto sum_of = [](std::initializer_list<Tracked> terms) {
    Sum<Tracked> sum(8);
    for (const Tracked& term : terms) sum.add(term);
    return sum;
  };
  const Tracked half = stored(0.5), scale = stored(-2.0);
  for (const Sum<Tracked>& sum :
       {sum_of({low}), sum_of({low, low, Tracked{}}), sum_of({open, low, stored(2.0)})}) {
    for (const Tracked& whole :
         {sum.value(), sum.scaled(half), sum.accumulated(4), sum.accumulated(4, half, scale)}) {
      EXPECT_TRUE(tracking::is_stored_infinity(whole));
      EXPECT_EQ(whole.v, -kInfinity);
      EXPECT_TRUE(exp(whole).is_exact_zero());
    }
  }
  // Of one sign each, they make a NaN about which nothing can be said.
  EXPECT_TRUE(std::isnan(sum_of({low, open, high}).value().v));
  EXPECT_EQ(sum_of({low, open, high}).accumulated(4, half).err, kInfinity);
  // What overflows in f32 on the way may have met it there.
  EXPECT_FALSE(exp(sum_of({stored(3e38), low, stored(3e38)}).value()).is_exact_zero());
  EXPECT_EQ(sum_of({low, computed(1.0L, 0.0, 1.0, 0.25)}).value().half, 0.25);
}

}  // namespace
}  // namespace lossgate::reference
