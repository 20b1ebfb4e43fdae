// SPDX-License-Identifier: Apache-2.0
#include "properties/zero_upstream.h"

#include <gtest/gtest.h>

#include "properties/fake_grpo.h"
#include "properties/given_loss.h"

namespace lossgate::properties {
namespace {

using reference::Inputs;
using reference::Outputs;
using reference::Tracked;

thread_local Given driven;

/// A loss of one token whose value is given, and its gradient under an upstream gradient of 1.
const reference::Loss& driven_loss() {
  static const reference::Loss loss = [] {
    const std::vector<Axis> per_token = {Axis::sequences, Axis::tokens};
    reference::Loss made = grpo();
    made.signature = {};
    made.signature.id = "driven";
    made.signature.fields = {{.name = "x", .role = Role::differentiable, .axes = per_token}};
    made.signature.outputs = {{.name = "value", .axes = per_token}};
    made.signature.reductions = {Reduction::sum};
    made.evaluate = [](const Inputs<Tracked>& in, const Outputs<Tracked>& out) {
      out.writer("loss")(near(1.0L));
      out.writer("value")(driven.value, 0, 0);
      out.gradient("x")(in.upstream().v == 0.0L ? near(0.0L) : driven.gradient, 0, 0);
    };
    return made;
  }();
  return loss;
}

/// Whether the gradient of this value and gradient, stored in f32 and computed in f64, may be NaN.
bool may_be_nan(reference::Real value, reference::Real gradient, double upstream = 0.0) {
  driven = {.value = near(value), .gradient = near(gradient)};
  Case c;
  c.spec = standard_spec(driven_loss().signature);
  c.shape[Axis::sequences] = c.shape[Axis::tokens] = 1;
  c.batch.fields = {{"x", Tensor::zeros(Dtype::f32, {1, 1})}};
  c.upstream = upstream;
  CaseStudy study(driven_loss(), c);
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
