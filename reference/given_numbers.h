// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/scalar.h"

/// Numbers as formulas meet them, for tests.
namespace lossgate::reference {

inline Tracked computed(Real v, double err, double peak = 0.0, double half = 0.0) {
  return {v, err, std::max(peak, tracking::most(tracking::magnitude(v), err, half)), half};
}
inline Tracked stored(double v) { return Entry<Tracked>::stored(v, -1); }

/// f32 without anything stored on the way.
class TrackedTest : public testing::Test {
 protected:
  TrackedTest() { change(); }
  Arithmetic& change() { return arithmetic_ = plain_arithmetic(Dtype::f32, ""); }
  Arithmetic arithmetic_;
  ArithmeticScope scope_{arithmetic_};
};

}  // namespace lossgate::reference
