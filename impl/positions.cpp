// SPDX-License-Identifier: Apache-2.0
#include "impl/positions.h"

#include <algorithm>

namespace lossgate::impl {
namespace {

void silence_masked(const Tensor& mask, std::vector<std::uint8_t>& valid) {
  const std::size_t width = size_of(mask.dtype);
  if (width == 1) {  // as most are
    for (std::size_t i = 0; i < valid.size(); ++i) valid[i] &= mask.bytes[i] != std::byte{0};
    return;
  }
  for (std::size_t i = 0; i < valid.size(); ++i) {
    std::uint64_t bits = 0;
    for (std::size_t byte = 0; byte < width; ++byte) {
      bits |= static_cast<std::uint64_t>(mask.bytes[i * width + byte]);
    }
    if (bits == 0) valid[i] = 0;
  }
}

void silence_ignored(const Tensor& labels, std::vector<std::uint8_t>& valid) {
  for (std::size_t i = 0; i < valid.size(); ++i) {
    if (labels.integer_at(static_cast<std::int64_t>(i)) == kIgnoreLabel) valid[i] = 0;
  }
}

}  // namespace

Positions find_positions(const LossSignature& signature, const Case& c) {
  const auto rows = static_cast<std::size_t>(std::max<std::int64_t>(c.shape[Axis::sequences], 0));
  const auto columns = static_cast<std::size_t>(std::max<std::int64_t>(c.shape.positions(), 0));
  Positions found;
  found.valid.assign(rows * columns, 1);
  if (!signature.mask.empty()) silence_masked(c.batch.at(signature.mask), found.valid);
  if (!signature.ignore_label.empty()) {
    silence_ignored(c.batch.at(signature.ignore_label), found.valid);
  }
  found.row_tokens.assign(rows, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    std::int64_t count = 0;
    for (std::size_t t = 0; t < columns; ++t) count += found.valid[row * columns + t];
    found.row_tokens[row] = count;
    found.tokens += count;
    found.sequences += count > 0;
  }
  return found;
}

}  // namespace lossgate::impl
