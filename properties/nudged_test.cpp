// SPDX-License-Identifier: Apache-2.0
#include "properties/nudged.h"

#include <gtest/gtest.h>

namespace lossgate::properties {
namespace {

LossSignature signature_of(Quantity quantity) {
  LossSignature made;
  made.fields = {
      {.name = "x", .role = Role::differentiable, .quantity = quantity, .axes = {Axis::sequences}}};
  return made;
}

Case numbers(std::initializer_list<double> values) {
  Case c;
  const auto n = static_cast<std::int64_t>(values.size());
  c.shape[Axis::sequences] = n;
  c.batch.fields = {{"x", Tensor::zeros(Dtype::f32, {n})}};
  std::int64_t i = 0;
  for (double value : values) c.batch.fields[0].second.set(i++, value);
  return c;
}

Tensor moved(Quantity quantity, Scale scale) {
  return nudged(signature_of(quantity), numbers({0.0, 8.0}), 0.5, scale).batch.at("x");
}

TEST(Nudged, AZeroStaysWhereEachNumberMovesByItsOwnDigits) {
  const Tensor x = moved(Quantity::value, Scale::of_number);
  EXPECT_EQ(x.at(0), 0.0);
  EXPECT_NE(x.at(1), 8.0);
  EXPECT_NEAR(x.at(1), 8.0, 4.0);
}

TEST(Nudged, AZeroMovesWithItsFieldAndWhereItIsALog) {
  const Tensor x = moved(Quantity::value, Scale::of_field);
  EXPECT_NE(x.at(0), 0.0);
  EXPECT_NEAR(x.at(0), 0.0, 4.0);
  const Tensor log = moved(Quantity::log_prob, Scale::of_number);
  EXPECT_NE(log.at(0), 0.0);
  EXPECT_NEAR(log.at(0), 0.0, 0.5);
}

TEST(Nudged, ACaseMovesTheSameEachTime) {
  EXPECT_EQ(moved(Quantity::logit, Scale::of_field).bytes,
            moved(Quantity::logit, Scale::of_field).bytes);
}

}  // namespace
}  // namespace lossgate::properties
