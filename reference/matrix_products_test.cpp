// SPDX-License-Identifier: Apache-2.0
#include "reference/matrix_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/given_numbers.h"

namespace lossgate::reference {
namespace {

using MatrixProducts = TrackedTest;

TEST_F(MatrixProducts, AreChargedAsASumOfTheirTermsAndItsStart) {
  Arithmetic& arithmetic = arithmetic_;
  arithmetic.matmul = {.roundoff = 0x1p-12, .order = SumOrder::pairwise, .width = 1.0};
  const Tracked one{1.0L, 0.0, 1.0, 0.0};
  for (const std::int64_t products : {2, 3, 4, 7, 8}) {
    const Tracked dot_of_ones = dot<Tracked>(
        products, one, one, [&](std::int64_t) { return one; }, [&](std::int64_t) { return one; });
    Sum<Tracked> sum(products + 1, &arithmetic.matmul);
    for (std::int64_t i = 0; i <= products; ++i) sum.add(one);
    EXPECT_EQ(dot_of_ones.v, sum.value().v);
    EXPECT_EQ(dot_of_ones.err, sum.value().err) << products;
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
