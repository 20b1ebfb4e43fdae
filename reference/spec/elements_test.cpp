// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/elements.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace lossgate {
namespace {

TEST(Elements, AreThoseThatTheTensorHasOneByOne) {
  for (Dtype dtype : kAllDtypes) {
    Tensor tensor = Tensor::zeros(dtype, {5, 7});
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i % 2));
    if (is_float(dtype)) {
      tensor.set(3, -0.0);
      tensor.set(4, HUGE_VAL);
      tensor.set(5, std::nan(""));
      tensor.set(6, -min_subnormal(dtype));
      tensor.set(34, max_finite(dtype));
    }
    const std::vector<double> elements = elements_of(tensor);
    ASSERT_EQ(std::ssize(elements), tensor.size());
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(elements[static_cast<std::size_t>(i)]),
                std::bit_cast<std::uint64_t>(tensor.at(i)))
          << name(dtype) << " " << i;
    }
  }
  EXPECT_TRUE(elements_of(Tensor::zeros(Dtype::f32, {3, 0})).empty());
}

}  // namespace
}  // namespace lossgate
