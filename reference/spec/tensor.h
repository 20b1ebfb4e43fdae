// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/spec/dtype.h"

namespace lossgate {

using Extents = std::vector<std::int64_t>;

/// The number of elements of an array with these extents; 1 for a scalar.
std::int64_t element_count(std::span<const std::int64_t> extents);

/// A dense row-major array, kept as the stored bits of its dtype: NaN payloads, signed zeros and
/// padding survive. Never "cleaned".
struct Tensor {
  Dtype dtype = Dtype::f32;
  Extents extents;
  std::vector<std::byte> bytes;

  static Tensor zeros(Dtype dtype, Extents extents);

  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size() / size_of(dtype)); }

  const std::byte* element(std::int64_t index) const {
    return &bytes[static_cast<std::size_t>(index) * size_of(dtype)];
  }
  std::byte* element(std::int64_t index) {
    return &bytes[static_cast<std::size_t>(index) * size_of(dtype)];
  }

  /// The element, exactly (integers: up to 2^53).
  double at(std::int64_t index) const { return decode(dtype, element(index)); }
  std::int64_t integer_at(std::int64_t index) const {
    return decode_integer(dtype, element(index));
  }
  /// Stores the value rounded to the dtype.
  void set(std::int64_t index, double value) { encode(dtype, value, element(index)); }

  /// Whether every element is finite, as integers are; what is asked of whole tensors is not read
  /// element by element.
  bool all_finite() const;

  bool operator==(const Tensor&) const = default;  ///< same dtype, extents and bits
};

}  // namespace lossgate
