// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/numbers.h"

#include <gtest/gtest.h>

namespace lossgate {
namespace {

Tensor thirds(Dtype dtype) {
  Tensor tensor = Tensor::zeros(dtype, {2, 3});
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i) / 3.0);
  return tensor;
}

TEST(TakeNumbers, RoundsEachToTheTensorsOwnDtype) {
  Tensor narrow = Tensor::zeros(Dtype::bf16, {2, 3});
  take_numbers(narrow, thirds(Dtype::f32));
  EXPECT_EQ(narrow, thirds(Dtype::bf16));
  Tensor wide = Tensor::zeros(Dtype::f32, {2, 3});
  take_numbers(wide, narrow);
  EXPECT_EQ(wide.bytes.size(), 6 * size_of(Dtype::f32));
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(wide.at(i), narrow.at(i));
}

TEST(TakeNumbers, KeepsEveryBitOfTheSameDtype) {
  Tensor given = thirds(Dtype::bf16), taken = Tensor::zeros(Dtype::bf16, {2, 3});
  store_bits(Dtype::bf16, 0x7fc1, given.element(4));  // a NaN of its own
  take_numbers(taken, given);
  EXPECT_EQ(taken.bytes, given.bytes);
}

TEST(AsDtype, IsTheTensorItselfInItsOwn) {
  EXPECT_EQ(as_dtype(thirds(Dtype::f16), Dtype::f16), thirds(Dtype::f16));
  EXPECT_EQ(as_dtype(thirds(Dtype::f32), Dtype::bf16), thirds(Dtype::bf16));
}

}  // namespace
}  // namespace lossgate
