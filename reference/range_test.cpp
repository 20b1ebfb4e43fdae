// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "reference/given_numbers.h"

/// Rules B2 and C1: what ends where a format does.
namespace lossgate::reference {
namespace {

TEST_F(TrackedTest, ASigmoidMayBeZeroWhereItsExponentialOverflows) {
  change() = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(arithmetic_);
  const Tracked near = sigmoid(computed(-87.0L, 0.0, 87.0)),
                far = sigmoid(computed(-89.0L, 0.0, 89.0));
  EXPECT_LT(near.err, 1e-4 * tracking::magnitude(near.v));
  EXPECT_GE(far.err, tracking::magnitude(far.v));
  EXPECT_GT(far.v, 0.0L);
}

TEST_F(TrackedTest, AStoreInANarrowerRangeOverflowsAsTheComputeFormatDoes) {
  change() = plain_arithmetic(Dtype::f32, "");
  arithmetic_.stage(Stage::log_prob) = {
      .roundoff = 0x1p-11, .eta = 0x1p-24, .largest = max_finite(Dtype::f16)};
  const ArithmeticScope scope(arithmetic_);
  EXPECT_LE(store(Stage::log_prob, computed(-65000.0L, 0.0, 65000.0)).peak, tracking::largest);
  EXPECT_GT(store(Stage::log_prob, computed(-65490.0L, 0.0, 65490.0)).peak, tracking::largest)
      << "within T of its own roundoff";
  const Tracked beyond = store(Stage::log_prob, computed(-70000.0L, 0.0, 70000.0));
  EXPECT_GT(beyond.peak, tracking::largest);
  EXPECT_EQ(beyond.v, -70000.0L);
  EXPECT_GT((exp(beyond) * beyond).peak, tracking::largest) << "0 times infinity";
  EXPECT_LE(store(Stage::logits, computed(-70000.0L, 0.0, 70000.0)).peak, tracking::largest);
}

TEST_F(TrackedTest, APartThatIsStoredOverflowsAsItsStageDoesWhateverMeetsIt) {
  change() = plain_arithmetic(Dtype::f32, "");
  arithmetic_.stage(Stage::per_token) = {
      .roundoff = 0x1p-11, .eta = 0x1p-24, .largest = max_finite(Dtype::f16)};
  const ArithmeticScope scope(arithmetic_);
  const Tracked weight = computed(0.125L, 0.0, 0.125);
  const auto peak = [&](Real part, const Tracked& by) {
    const Tracked stored = computed(part, 0.0, tracking::magnitude(part));
    return stored_within(Stage::per_token, by * stored, stored).peak;
  };
  EXPECT_LE(peak(65000.0L, weight), tracking::largest);
  EXPECT_GT(peak(65490.0L, weight), tracking::largest) << "within T of its own roundoff";
  EXPECT_GT(peak(-80000.0L, weight), tracking::largest) << "half of the square of 400";
  EXPECT_LE(peak(65000.0L, Tracked{}), tracking::largest);
  EXPECT_GT(peak(65536.0L, Tracked{}), tracking::largest) << "an upstream gradient, times 0";
  arithmetic_.stage(Stage::per_token) = {};
  EXPECT_LE(peak(80000.0L, weight), tracking::largest) << "of a stage that is not stored";
}

}  // namespace
}  // namespace lossgate::reference
