// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference/spec/case.h"

namespace lossgate::impl {

/// What a kernel finds in a tensor that lies in memory as the layout says and is read from its
/// first element on without strides.
inline Tensor read_as_contiguous(const Tensor& tensor, Layout layout) {
  // What lies beside the rows, how much of it, and a number that would show.
  constexpr std::int64_t kBeside = 3;
  constexpr double kNumberBeside = 77.0;
  Tensor read = tensor;
  if (layout == Layout::padded_rows) {
    const std::int64_t width = tensor.extents.back();
    for (std::int64_t at = 0; at < read.size(); ++at) {
      const std::int64_t row = at / (width + kBeside), column = at % (width + kBeside);
      read.set(at, column < width ? tensor.at(row * width + column) : kNumberBeside);
    }
  }
  if (layout == Layout::transposed) {
    const std::int64_t outer = tensor.extents[0], inner = tensor.extents[1];
    const std::int64_t width = read.size() == 0 ? 1 : read.size() / (outer * inner);
    for (std::int64_t at = 0; at < read.size(); ++at) {
      const std::int64_t place = at / width;  // the second axis is the slow one
      const std::int64_t second = place / outer, first = place % outer;
      read.set(at, tensor.at((first * inner + second) * width + at % width));
    }
  }
  return read;
}

}  // namespace lossgate::impl
