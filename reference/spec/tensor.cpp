// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/tensor.h"

namespace lossgate {

std::int64_t element_count(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

Tensor Tensor::zeros(Dtype dtype, Extents extents) {
  const auto count = static_cast<std::size_t>(element_count(extents));
  return {dtype, std::move(extents), std::vector<std::byte>(count * size_of(dtype))};
}

}  // namespace lossgate
