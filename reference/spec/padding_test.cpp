// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/padding.h"

#include <gtest/gtest.h>

#include <vector>

namespace lossgate {
namespace {

/// A number and a list of two at each position, and a number of each sequence.
LossSignature signature() {
  LossSignature signature;
  signature.id = "padded";
  signature.mask = "mask";
  signature.prefix_mask = true;
  signature.fields = {{.name = "x", .axes = {Axis::sequences, Axis::tokens}},
                      {.name = "list", .axes = {Axis::sequences, Axis::tokens, Axis::support}},
                      {.name = "once", .axes = {Axis::sequences}},
                      {.name = "mask",
                       .role = Role::mask,
                       .quantity = Quantity::mask,
                       .axes = {Axis::sequences, Axis::tokens},
                       .dtypes = {Dtype::u8}}};
  return signature;
}

/// Two sequences of four tokens; every number is that of its place.
Case masked_by(const std::vector<int>& mask) {
  Case c;
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 4;
  c.shape[Axis::support] = 2;
  for (const Field& field : signature().fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(
          i, field.role == Role::mask ? mask[static_cast<std::size_t>(i)] : static_cast<double>(i));
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return c;
}

std::vector<int> numbers(const Tensor& tensor) {
  std::vector<int> list;
  for (std::int64_t i = 0; i < tensor.size(); ++i) list.push_back(static_cast<int>(tensor.at(i)));
  return list;
}

TEST(Padding, OfTheRightLeavesWhatCountsFirst) {
  const LossSignature of = signature();
  EXPECT_TRUE(valid_come_first(of, masked_by({1, 1, 0, 0, 1, 1, 1, 1})));
  EXPECT_TRUE(valid_come_first(of, masked_by({0, 0, 0, 0, 1, 0, 0, 0})));
  EXPECT_FALSE(valid_come_first(of, masked_by({1, 1, 0, 0, 0, 1, 1, 1})));
  EXPECT_FALSE(valid_come_first(of, masked_by({1, 0, 1, 0, 1, 1, 1, 1})));
}

TEST(Padding, IsMadeSuchWithAllThatStandsAtAPosition) {
  Case c = masked_by({0, 1, 0, 1, 1, 1, 1, 0});
  move_valid_first(signature(), c);
  EXPECT_EQ(numbers(c.batch.at("mask")), (std::vector{1, 1, 0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(numbers(c.batch.at("x")), (std::vector{1, 3, 0, 2, 4, 5, 6, 7}));
  EXPECT_EQ(numbers(c.batch.at("list")),
            (std::vector{2, 3, 6, 7, 0, 1, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(numbers(c.batch.at("once")), (std::vector{0, 1}));
  EXPECT_TRUE(valid_come_first(signature(), c));
}

TEST(Padding, StaysAsItIsWhereCallersHaveAnyMask) {
  LossSignature of = signature();
  of.prefix_mask = false;
  Case c = masked_by({0, 1, 0, 1, 1, 1, 1, 0});
  move_valid_first(of, c);
  EXPECT_EQ(numbers(c.batch.at("mask")), (std::vector{0, 1, 0, 1, 1, 1, 1, 0}));
}

}  // namespace
}  // namespace lossgate
