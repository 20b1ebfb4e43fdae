// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/tensor.h"

#include <cstring>

namespace lossgate {
namespace {

/// Whether no element has all bits of its exponent set.
template <class Word>
bool none_has(Word exponent, const std::vector<std::byte>& bytes) {
  Word found = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, &bytes[at], sizeof word);
    found |= static_cast<Word>((word & exponent) == exponent);
  }
  return found == 0;
}

}  // namespace

std::int64_t element_count(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

Tensor Tensor::zeros(Dtype dtype, Extents extents) {
  const auto count = static_cast<std::size_t>(element_count(extents));
  return {dtype, std::move(extents), std::vector<std::byte>(count * size_of(dtype))};
}

bool Tensor::all_finite() const {
  switch (dtype) {
    case Dtype::f64:
      return none_has<std::uint64_t>(0x7ff0'0000'0000'0000, bytes);
    case Dtype::f32:
      return none_has<std::uint32_t>(0x7f80'0000, bytes);
    case Dtype::f16:
      return none_has<std::uint16_t>(0x7c00, bytes);
    case Dtype::bf16:
      return none_has<std::uint16_t>(0x7f80, bytes);
    default:
      return true;
  }
}

}  // namespace lossgate
