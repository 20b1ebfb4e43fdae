// SPDX-License-Identifier: Apache-2.0
#include "reference/matrix_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/given_numbers.h"

namespace lossgate::reference {
namespace {

using MatrixProducts = TrackedTest;

TEST_F(MatrixProducts, AreChargedAsASumOfTheirTermsAndOfAStart) {
  arithmetic_ = plain_arithmetic(Dtype::bf16, "");
  arithmetic_.matmul = {.roundoff = 0x1p-12, .order = SumOrder::pairwise, .width = 1.0};
  const Tracked one = stored(1.0);
  const auto dot_of_ones = [&](std::int64_t products, const Tracked& start) {
    const auto factor = [&](std::int64_t) { return one; };
    return dot<Tracked>(products, start, one, factor, factor);
  };
  for (const std::int64_t products : {2, 3, 4, 7, 8}) {
    Sum<Tracked> sum(products + 1, &arithmetic_.matmul);
    for (std::int64_t i = 0; i < products; ++i) sum.add(one);
    EXPECT_EQ(dot_of_ones(products, {}).v, sum.value().v);
    EXPECT_EQ(dot_of_ones(products, {}).err, sum.value().err) << products;
    sum.add(one);
    EXPECT_EQ(dot_of_ones(products, one).v, sum.value().v);
    EXPECT_GE(dot_of_ones(products, one).err, sum.value().err) << products;
  }
}

/// The sum of `n` products of these.
Tracked dot_of(std::int64_t n, const Tracked& a, const Tracked& b) {
  return dot<Tracked>(
      n, Tracked{}, selected<Tracked>(1.0), [&](std::int64_t) { return a; },
      [&](std::int64_t) { return b; });
}

TEST_F(MatrixProducts, ThatAreFormedWiderRoundOnlyTheirResultToTheComputeFormat) {
  Arithmetic& arithmetic = arithmetic_ = plain_arithmetic(Dtype::bf16, "");
  const Tracked a = Entry<Tracked>::stored(1.5, -1), b = Entry<Tracked>::stored(0.75, -1);
  const double in_bf16 = dot_of(64, a, b).err, one_in_bf16 = dot_of(1, a, b).err;
  arithmetic.matmul.roundoff = unit_roundoff(Dtype::f32);
  const double rounded = unit_roundoff(Dtype::bf16) * 64 * 1.5 * 0.75;
  EXPECT_GE(dot_of(64, a, b).err, rounded);
  EXPECT_LE(dot_of(64, a, b).err, 1.01 * rounded);
  EXPECT_GT(in_bf16, 50.0 * rounded) << "where each addition rounds, and each product";
  EXPECT_NEAR(dot_of(1, a, b).err, one_in_bf16, 0.01 * one_in_bf16)
      << "one product is rounded, too";
}

TEST_F(MatrixProducts, MayBeStoredBeforeTheirStartIsAdded) {
  arithmetic_ = plain_arithmetic(Dtype::bf16, "");
  const auto logit = [](double a, double b, double start) {
    return dot<Tracked>(
        1, stored(start), stored(1.0), [&](std::int64_t) { return stored(a); },
        [&](std::int64_t) { return stored(b); });
  };
  const double in_bf16 = logit(20.0, 20.125, -402.0).err;
  arithmetic_.matmul.roundoff = unit_roundoff(Dtype::f32);
  const Tracked half = logit(20.0, 20.125, -402.0);  // 402.5, which is 402 in bf16
  EXPECT_EQ(half.v, 0.5L);
  EXPECT_GE(kThreshold * half.err, 0.5);
  EXPECT_LE(half.err, in_bf16) << "no more than where all of it is in bf16";
  arithmetic_ = plain_arithmetic(Dtype::f32, "");
  arithmetic_.stage(Stage::logits).roundoff = unit_roundoff(Dtype::bf16);
  EXPECT_GE(kThreshold * logit(20.0, 20.125, -402.0).err, 0.5);
  EXPECT_LE(logit(20.0, 20.125, 0.0).err, 1e-4) << "nothing is added";
}

TEST_F(MatrixProducts, OfACoarserFormatHaveFactorsThatAreRoundedToIt) {
  arithmetic_.matmul.roundoff = unit_roundoff(Dtype::f16);  // TF32's
  EXPECT_GE(kThreshold * dot_of(1, stored(1.0), stored(3.0007)).err, 0.0007);
  EXPECT_GE(kThreshold * dot_of(1, stored(1.0007), stored(1.0007)).err, 0.0014);
}

TEST_F(MatrixProducts, MayUnderflowBeforeADivisorMakesThemLarger) {
  const double least = std::numeric_limits<float>::denorm_min();
  // 0.5 / 0.05 times the smallest number: half of it is 0, ten times as much is not.
  Sum<Tracked> sum = matmul_sum<Tracked>(1);
  sum.add(matrix_term(computed(10.0L, 0.0, 11.0), stored(least), stored(0.05)));
  EXPECT_GE(kThreshold * sum.scaled(stored(1.0), stored(20.0)).err, 10.0 * least);
  EXPECT_LT(kThreshold * sum.scaled(stored(1.0), stored(1.0)).err, 10.0 * least);
}

TEST_F(MatrixProducts, OfFactorsThatWereDividedByLessThanOneAreAsMuchLarger) {
  arithmetic_ = plain_arithmetic(Dtype::f32, "");
  const auto peak = [&](double temperature, double size) {
    const auto left = [&](std::int64_t) { return stored(size); };
    const auto right = [&](std::int64_t i) { return stored(i == 0 ? 2e30 : -2e30); };
    return dot<Tracked>(2, Tracked{}, stored(temperature), left, right).peak;
  };
  EXPECT_LE(peak(1.0, 1e7), tracking::largest);
  EXPECT_LE(peak(2.0, 1e7), tracking::largest);
  EXPECT_GT(peak(0.05, 1e7), tracking::largest) << "4e38 and as much less";
  EXPECT_LE(peak(0.05, 1e5), tracking::largest);
}

TEST_F(MatrixProducts, MayHaveAFactorThatWasDividedBefore) {
  const float small = 3.0F * std::numeric_limits<float>::denorm_min(), large = 1e20F, by = 2.0F;
  const double error = std::fabs(double{small / by * large * by} - double{small} * double{large});
  const Tracked a = stored(small), b = stored(large), divisor = stored(by);
  EXPECT_GT(error, kThreshold * multiplied(a, b).err);
  EXPECT_LE(error, kThreshold * matrix_term(a, b, divisor).err);
  EXPECT_LE(error, kThreshold * matrix_term(b, a, divisor).err);
  EXPECT_EQ(matrix_term(a, b, stored(1.0)).err, multiplied(a, b).err);
  EXPECT_TRUE(matrix_term(stored(0.0), b, divisor).is_exact_zero());
  // A tenth overflows where the product and what becomes of it fit.
  EXPECT_GT(matrix_term(stored(1e-10), stored(1e38), stored(0.1)).peak, max_finite(Dtype::f32));
  EXPECT_EQ(matrix_term(2.0L, 3.0L, 4.0L), 6.0L);
}

}  // namespace
}  // namespace lossgate::reference
