// SPDX-License-Identifier: Apache-2.0
#include "reference/exponents.h"

#include <gtest/gtest.h>

namespace lossgate::reference {
namespace {

TEST(Exponents, AreThoseOfTheNarrowestFormatOnTheWay) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  EXPECT_EQ(Exponents(arithmetic).largest, max_finite(Dtype::f32));
  EXPECT_EQ(Exponents(arithmetic).least_normal, min_normal(Dtype::f32));
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    arithmetic.stage(Stage::log_prob) = {unit_roundoff(dtype), min_subnormal(dtype),
                                         max_finite(dtype)};
    EXPECT_EQ(Exponents(arithmetic).largest, max_finite(dtype));
    EXPECT_EQ(Exponents(arithmetic).least_normal, min_normal(dtype));
  }
  Exponents stored(plain_arithmetic(Dtype::f64, ""));
  EXPECT_EQ(stored.largest, max_finite(Dtype::f64));
  stored.narrow_to(Dtype::f16);
  EXPECT_EQ(stored.largest, max_finite(Dtype::f16));
  EXPECT_EQ(stored.least_normal, min_normal(Dtype::f16));
}

TEST(HalfOfDigits, SquaredIsARounding) {
  EXPECT_EQ(half_of_digits(Dtype::f32) * half_of_digits(Dtype::f32), unit_roundoff(Dtype::f32));
}

}  // namespace
}  // namespace lossgate::reference
