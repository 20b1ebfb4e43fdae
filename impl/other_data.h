// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "impl/parts.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// What `forward` makes of another batch of the same shape: all sequences as the last of those in
/// which most counts.
template <class F>
auto on_other_data(const MicroBatch& batch, F&& forward) {
  const std::vector<std::int64_t>& counts = batch.positions.row_tokens;
  const auto fullest = std::max_element(counts.rbegin(), counts.rend());
  const std::vector<std::int64_t> rows(counts.size(), counts.rend() - fullest - 1);
  Case part = take_part(batch.signature, batch.part, rows);
  const Positions positions = find_positions(batch.signature, part);
  MicroBatch other = batch.with(part, positions);
  return std::forward<F>(forward)(other);
}

}  // namespace lossgate::impl
