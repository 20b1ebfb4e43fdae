// SPDX-License-Identifier: Apache-2.0
#include "reference/one_plus.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/tracked.h"

namespace lossgate::reference {
namespace {

class OnePlus : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

TEST_F(OnePlus, RoundsNothingWhereTheFormatHoldsBoth) {
  for (const Real x : {0.5L, -0.5L, -1.0L, 0.0L}) {
    const Tracked sum = one_plus<Tracked>(x);
    EXPECT_EQ(sum.v, 1.0L + x);
    EXPECT_EQ(sum.err, 0.0);
  }
}

TEST_F(OnePlus, MayBeMadeOfARoundedOption) {
  for (const double x : {-0.9, -0.8838, -0.999, 0.2, 0.28}) {
    const Tracked sum = one_plus<Tracked>(x);
    const float made = 1.0F + static_cast<float>(x);
    EXPECT_LE(std::fabs(static_cast<double>(made - sum.v)), kThreshold * sum.err) << x;
    EXPECT_LE(sum.err, unit_roundoff(Dtype::f32) * (std::fabs(1.0 + x) + std::fabs(x)) * 1.0001);
    EXPECT_GE(sum.peak, std::fabs(x));
  }
}

}  // namespace
}  // namespace lossgate::reference
