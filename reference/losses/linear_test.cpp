// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/linear.h"

#include <gtest/gtest.h>

namespace lossgate::reference {
namespace {

TEST(Dot, IsChargedAsASumOfItsProductsAndItsStart) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  arithmetic.matmul = {.roundoff = 0x1p-12, .order = SumOrder::pairwise, .width = 1.0};
  const ArithmeticScope scope(arithmetic);
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

}  // namespace
}  // namespace lossgate::reference
