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

}  // namespace
}  // namespace lossgate::reference
