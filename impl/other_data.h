// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "impl/parts.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// What `forward` makes of the micro-batch with its sequences in reverse order.
template <class F>
auto on_other_data(const MicroBatch& batch, F&& forward) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch.part.shape[Axis::sequences]));
  std::iota(rows.rbegin(), rows.rend(), std::int64_t{0});
  Case part = take_part(batch.signature, batch.part, rows);
  const Positions positions = find_positions(batch.signature, part);
  MicroBatch other = batch.with(part, positions);
  return std::forward<F>(forward)(other);
}

}  // namespace lossgate::impl
