// SPDX-License-Identifier: Apache-2.0
#include "properties/zero_upstream.h"

#include <gtest/gtest.h>

#include "properties/given_loss.h"

namespace lossgate::properties {
namespace {

/// Whether the gradient of this value and gradient, stored in f32 and computed in f64, may be NaN.
bool may_be_nan(reference::Real value, reference::Real gradient, double upstream = 0.0) {
  const Given given{.loss = near(1.0L), .value = near(value), .gradient = near(gradient)};
  CaseStudy study = given_study(given, Dtype::f32, upstream);
  return !nan_excused(study, plain_arithmetic(Dtype::f64, "")).empty();
}

constexpr reference::Real kBeyondStored = 1e39L, kBeyondComputed = 1e309L;

TEST(ZeroUpstream, ExcusesNoNanOfAGradientThatFitsWhereItIsComputed) {
  EXPECT_FALSE(may_be_nan(1.0L, 1.0L));
  EXPECT_FALSE(may_be_nan(1.0L, kBeyondStored)) << "its product alone is stored";
  EXPECT_TRUE(may_be_nan(1.0L, kBeyondComputed));
}

TEST(ZeroUpstream, ExcusesTheNanOfATokenWhoseValueOverflowsWhereItIsStored) {
  EXPECT_TRUE(may_be_nan(kBeyondStored, 1.0L));
  EXPECT_FALSE(may_be_nan(1e38L, 1.0L));
}

TEST(ZeroUpstream, ExcusesNothingUnderAnyOtherUpstream) {
  EXPECT_FALSE(may_be_nan(kBeyondComputed, kBeyondComputed, 1.0));
}

}  // namespace
}  // namespace lossgate::properties
