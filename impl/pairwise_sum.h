// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>

namespace lossgate::impl {

/// Halves, halves of halves: each term meets at most log2(count) roundings, rounded up.
template <class F>
F pairwise_sum(const F* terms, std::size_t count, F scale = F(1)) {
  if (count == 0) return F(0);
  if (count == 1) return terms[0] * scale;
  if (count == 2) return terms[0] * scale + terms[1] * scale;
  if (count == 4) {
    return (terms[0] * scale + terms[1] * scale) + (terms[2] * scale + terms[3] * scale);
  }
  const std::size_t half = count / 2;
  return pairwise_sum(terms, half, scale) + pairwise_sum(terms + half, count - half, scale);
}

/// The pairwise sum, infinite or NaN only where the whole sum is: where a partial sum overflowed,
/// all is done again with terms shrunk by a power of two.
template <class F>
F overflow_free_sum(const F* terms, std::size_t count) {
  const F sum = pairwise_sum(terms, count);
  if (std::isfinite(sum)) return sum;
  const int exponent = std::ilogb(static_cast<F>(count)) + 1;
  return std::ldexp(pairwise_sum(terms, count, std::ldexp(F(1), -exponent)), exponent);
}

}  // namespace lossgate::impl
