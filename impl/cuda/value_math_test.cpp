// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/value_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lossgate::impl {
namespace {

const ValueOptions<float> kAround{.clip = {true, 0.25f}, .around_old = true};
const ValueOptions<float> kInterval{.clip = {true, 0.25f}, .around_old = false};
const float kNan = std::numeric_limits<float>::quiet_NaN();

float gradient(const ValueTerm<float>& term) { return term.share * term.slope; }

TEST(ValueTerm, TakesTheLargerSquare) {
  for (const ValueOptions<float>& options : {kAround, kInterval}) {
    const auto farther = value_term(2.0f, 0.0f, 0.0f, options);  // clipped to 0.25, so nearer
    EXPECT_EQ(farther.value, 2.0f);
    EXPECT_EQ(gradient(farther), 2.0f);
    const auto clipped = value_term(2.0f, 0.0f, 2.5f, options);  // clipped to 0.25, so farther
    EXPECT_EQ(clipped.value, 0.5f * 2.25f * 2.25f);
    EXPECT_EQ(gradient(clipped), 0.0f);
    EXPECT_EQ(gradient(value_term(0.125f, 0.0f, 1.0f, options)), -0.875f);
  }
}

TEST(ValueTerm, HasHalfOfTheGradientOnATieOutside) {
  const auto tie = value_term(2.25f, 0.0f, 1.25f, kAround);  // 1 on either side of the target
  EXPECT_EQ(tie.value, 0.5f);
  EXPECT_EQ(gradient(tie), 0.5f);
}

TEST(ValueTerm, KeepsTheGradientOfTheSmallestDistance) {
  const float least = std::numeric_limits<float>::denorm_min();
  const auto inside = value_term(0.0f, 0.0f, least, kAround);
  EXPECT_EQ(gradient(inside), -least);
  const auto tie = value_term(-least, 0.0f, 0.0f, {.clip = {true, 0.0f}});
  EXPECT_EQ(tie.slope, -least);
}

TEST(ValueTerm, SquaresWhatTheFormatHoldsWithoutOverflow) {
  const auto large = value_term(2e19f, 0.0f, 0.0f, {});
  EXPECT_FLOAT_EQ(large.value, 2e38f);
}

TEST(ValueTerm, ShowsANanWhereverItStands) {
  for (const ValueOptions<float>& options : {kAround, kInterval}) {
    EXPECT_TRUE(std::isnan(value_term(kNan, 0.0f, 0.0f, options).value));
    EXPECT_TRUE(std::isnan(value_term(0.0f, kNan, 0.0f, options).value));
    EXPECT_TRUE(std::isnan(value_term(0.0f, 0.0f, kNan, options).slope));
  }
}

}  // namespace
}  // namespace lossgate::impl
