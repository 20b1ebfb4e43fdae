// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lossgate {
namespace {

TEST(Tensor, AScalarHasOneElement) {
  EXPECT_EQ(element_count(Extents{}), 1);
  EXPECT_EQ(Tensor::zeros(Dtype::f64, {}).size(), 1);
}

TEST(Tensor, AnAxisOfLengthZeroLeavesNone) {
  EXPECT_EQ(element_count(Extents{3, 0, 5}), 0);
  EXPECT_EQ(Tensor::zeros(Dtype::f32, {3, 0}).bytes.size(), 0u);
}

TEST(Tensor, HoldsAsManyBytesAsItsDtypeNeeds) {
  for (Dtype dtype : kAllDtypes) {
    const Tensor tensor = Tensor::zeros(dtype, {2, 3});
    EXPECT_EQ(tensor.bytes.size(), 6 * size_of(dtype));
    EXPECT_EQ(tensor.size(), 6);
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor.at(i), 0.0);
  }
}

TEST(Tensor, StoresEachElementRoundedAndAlone) {
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    Tensor tensor = Tensor::zeros(dtype, {3});
    tensor.set(1, 0.1);
    EXPECT_EQ(tensor.at(0), 0.0);
    EXPECT_EQ(tensor.at(1), round_to(dtype, 0.1));
    EXPECT_EQ(tensor.at(2), 0.0);
  }
}

TEST(Tensor, IsFiniteWhereEveryElementIs) {
  for (Dtype dtype : kAllDtypes) {
    Tensor tensor = Tensor::zeros(dtype, {37});
    EXPECT_TRUE(tensor.all_finite());
    if (!is_float(dtype)) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      for (const double value :
           {max_finite(dtype), -max_finite(dtype), min_subnormal(dtype), -0.0}) {
        tensor.set(i, value);
        EXPECT_TRUE(tensor.all_finite()) << name(dtype) << " " << value;
      }
      for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan(""), -std::nan("")}) {
        tensor.set(i, value);
        EXPECT_FALSE(tensor.all_finite()) << name(dtype) << " " << i;
      }
      tensor.set(i, 1.0);
    }
  }
}

TEST(Tensor, ReadsLargeIntegersExactly) {
  Tensor tensor = Tensor::zeros(Dtype::i64, {1});
  store_bits(Dtype::i64, 9007199254740993, tensor.element(0));
  EXPECT_EQ(tensor.integer_at(0), 9007199254740993);
}

TEST(Tensor, IsTheSameOnlyWithTheSameBits) {
  Tensor zero = Tensor::zeros(Dtype::f32, {1});
  Tensor minus_zero = zero;
  minus_zero.set(0, -0.0);
  EXPECT_FALSE(zero == minus_zero);
  Tensor nan = zero;
  nan.set(0, NAN);
  EXPECT_EQ(nan, nan);
  EXPECT_FALSE(zero == Tensor::zeros(Dtype::i32, {1}));
  EXPECT_FALSE(zero == Tensor::zeros(Dtype::f32, {1, 1}));
}

}  // namespace
}  // namespace lossgate
