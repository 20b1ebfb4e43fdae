// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/largest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lossgate {
namespace {

/// Three tokens, of which the second is masked, and a reward of their sequence.
LossSignature signature(double largest) {
  LossSignature signature;
  signature.id = "limited";
  signature.mask = "mask";
  const std::vector<Axis> tokens = {Axis::sequences, Axis::tokens};
  signature.fields = {
      {.name = "x", .quantity = Quantity::value, .axes = tokens, .largest = largest},
      {.name = "reward",
       .quantity = Quantity::reward,
       .axes = {Axis::sequences},
       .largest = largest},
      {.name = "free", .quantity = Quantity::value, .axes = tokens},
      {.name = "mask", .role = Role::mask, .quantity = Quantity::mask, .axes = tokens}};
  return signature;
}

Case holding(Dtype dtype, const std::vector<double>& x, double reward, double free) {
  Case c;
  c.shape[Axis::sequences] = 1;
  c.shape[Axis::tokens] = 3;
  for (const Field& field : signature(1.0).fields) {
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    c.batch.at("x").set(static_cast<std::int64_t>(i), x[i]);
  c.batch.at("reward").set(0, reward);
  c.batch.at("free").set(0, free);
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("mask").set(2, 1.0);
  return c;
}

TEST(Largest, IsOfNumbersThatCountWhereTheFieldSaysSo) {
  const LossSignature of = signature(2.0);
  EXPECT_TRUE(numbers_are_small(of, holding(Dtype::f32, {2.0, 9.0, -2.0}, 2.0, 9.0)));
  EXPECT_TRUE(numbers_are_small(of, holding(Dtype::f32, {-HUGE_VAL, 0.0, NAN}, 0.0, 0.0)))
      << "another contract's";
  EXPECT_FALSE(numbers_are_small(of, holding(Dtype::f32, {0.0, 0.0, -2.5}, 0.0, 0.0)));
  EXPECT_FALSE(numbers_are_small(of, holding(Dtype::f32, {0.0, 0.0, 0.0}, 2.5, 0.0)));
}

TEST(Largest, IsWhatLargerNumbersBecome) {
  Case c = holding(Dtype::f32, {7.0, 9.0, -3.0}, -9.0, 9.0);
  make_numbers_small(signature(2.0), c);
  EXPECT_EQ(c.batch, holding(Dtype::f32, {2.0, 9.0, -2.0}, -2.0, 9.0).batch);
}

TEST(Largest, IsRoundedAsTheFieldIsStored) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    for (const double largest : {0.1, 0.3, 1e6}) {
      Case c = holding(dtype, {max_finite(dtype), 0.0, 0.0}, 0.0, 0.0);
      make_numbers_small(signature(largest), c);
      EXPECT_TRUE(numbers_are_small(signature(largest), c)) << name(dtype) << ' ' << largest;
      EXPECT_TRUE(std::isfinite(c.batch.at("x").at(0))) << name(dtype) << ' ' << largest;
    }
  }
}

}  // namespace
}  // namespace lossgate
