// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "impl/external/session.h"

namespace lossgate::impl {
namespace {

TEST(BroughtImplementation, AllowsForWeightGradientsThatComeInSixteenBits) {
  Subject subject;
  subject.arithmetic.compute = Dtype::f32;
  const auto roundoff = [&](Axis first, Dtype stored) {
    LossSignature loss;
    loss.fields = {{"x", Role::differentiable, Quantity::weight, {first, Axis::hidden}}};
    const Arithmetic arithmetic = brought_implementation(subject, loss, nullptr).arithmetic(stored);
    EXPECT_EQ(arithmetic.roundoff, unit_roundoff(Dtype::f32));
    return arithmetic.stage(Stage::accumulate).roundoff;
  };
  EXPECT_EQ(roundoff(Axis::vocab, Dtype::bf16), unit_roundoff(Dtype::bf16));
  EXPECT_EQ(roundoff(Axis::vocab, Dtype::f32), unit_roundoff(Dtype::f32));
  EXPECT_EQ(roundoff(Axis::sequences, Dtype::bf16), unit_roundoff(Dtype::f32));
}

}  // namespace
}  // namespace lossgate::impl
