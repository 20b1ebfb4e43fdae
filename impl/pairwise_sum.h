// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace lossgate::impl {

/// Adds neighbours until one is left: each term meets at most log2(count) roundings, rounded up.
/// Overwrites the terms.
template <class F>
F pairwise_sum(F* terms, std::size_t count) {
  if (count == 0) return F(0);
  while (count > 1) {
    const std::size_t pairs = count / 2;
    for (std::size_t i = 0; i < pairs; ++i) terms[i] = terms[2 * i] + terms[2 * i + 1];
    if (count % 2 != 0) terms[pairs] = terms[count - 1];
    count = pairs + count % 2;
  }
  return terms[0];
}

}  // namespace lossgate::impl
