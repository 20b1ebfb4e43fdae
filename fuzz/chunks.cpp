// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chunks.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>

namespace lossgate::fuzz {
namespace {

/// Leaves out a chunk if the rest will do.
bool drop(Kept& kept, std::size_t first, std::size_t count, const Suffices& suffices) {
  Kept rest = kept;
  const auto begin = rest.begin() + static_cast<std::ptrdiff_t>(first);
  rest.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  if (!suffices(rest)) return false;
  kept = std::move(rest);
  return true;
}

/// Powers of two and halves of n that are less than n, the largest first.
std::vector<std::size_t> sizes(std::size_t n) {
  std::vector<std::size_t> all;
  for (std::size_t half = n / 2; half > 0; half /= 2) all.push_back(half);
  for (std::size_t power = std::bit_floor(n); power > 0; power /= 2) {
    if (power < n) all.push_back(power);
  }
  std::ranges::sort(all, std::greater());
  const auto [twice, end] = std::ranges::unique(all);
  all.erase(twice, end);
  return all;
}

}  // namespace

void drop_ends(Kept& kept, const Suffices& suffices) {
  for (const std::size_t size : sizes(kept.size())) {
    bool dropped = true;
    while (dropped && size < kept.size()) {
      dropped = drop(kept, kept.size() - size, size, suffices) || drop(kept, 0, size, suffices);
    }
  }
}

void drop_chunks(Kept& kept, const Suffices& suffices) {
  for (std::size_t size = kept.size(); size > 0; size /= 2) {
    int misses = 0;
    for (std::size_t first = 0; first < kept.size();) {
      const std::size_t count = std::min(size, kept.size() - first);
      if (drop(kept, first, count, suffices)) {
        misses = 0;
        continue;
      }
      first += count;
      // What is made of so many needed parts is as good as needed whole: a long list may not take
      // the tries of all others.
      if (++misses == kMostMisses) return;
    }
  }
}

Kept without(const Kept& all, const Kept& some) {
  Kept rest;
  std::ranges::set_difference(all, some, std::back_inserter(rest));
  return rest;
}

}  // namespace lossgate::fuzz
