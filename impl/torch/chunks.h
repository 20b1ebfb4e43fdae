// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>

namespace lossgate::impl {

/// Some tokens of every sequence, of whatever is [sequences, tokens, ...].
struct Chunk {
  std::int64_t first, count;
  at::Tensor operator()(const at::Tensor& x) const { return x.narrow(1, first, count); }
};

/// Calls `each(chunk)` until all tokens were in one. What stands between logits and their gradient
/// is no larger than a chunk of it, and is computed again on the way back rather than kept.
template <class Each>
void for_each_chunk(const at::Tensor& logits, const Each& each) {
  constexpr std::int64_t kEntries = 1 << 20;
  const std::int64_t tokens = logits.size(1);
  const std::int64_t one = std::max<std::int64_t>(logits.size(0) * logits.size(2), 1);
  const std::int64_t count = std::max<std::int64_t>(kEntries / one, 1);
  for (std::int64_t first = 0; first < tokens; first += count) {
    each(Chunk{first, std::min(count, tokens - first)});
  }
}

}  // namespace lossgate::impl
