// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/products.h"
#include "reference/sums.h"

/// Products of matrices, charged as the arithmetic declares them (rule B1): formed and added up in
/// a format of their own, and rounded to the compute format.
namespace lossgate::reference {

/// A term of a matrix product, rounded as these are. A divisor comes to their sum, or to either
/// factor before: what that loses to underflow is multiplied by the other. One of 1 rounds nothing.
template <class S>
S matrix_term(const S& a, const S& b, const S& /*divisor*/) {
  return a * b;
}

inline Tracked matrix_term(const Tracked& a, const Tracked& b, const Tracked& divisor) {
  using namespace tracking;
  Tracked result = unseen(times(a, b, current->matmul.roundoff), a, b);
  if (divisor.v == 1.0L || result.is_exact_zero() || is_stored_infinity(result)) return result;
  const double by = magnitude(divisor.v), larger = std::max(most(a), most(b));
  result.err += or_infinity(roundoff(result.v, result.half) + product(current->eta, by * larger));
  result.peak = std::max(result.peak, larger / by);
  return result;
}

/// A sum that the arithmetic forms as it multiplies matrices.
template <class S>
Sum<S> matmul_sum(std::int64_t extent) {
  return Sum<S>(extent);
}

template <>
inline Sum<Tracked> matmul_sum<Tracked>(std::int64_t extent) {
  return Sum<Tracked>(extent, &tracking::current->matmul);
}

/// start + sum of left(i) right(i), charged as the arithmetic multiplies matrices. All of it is
/// going to be divided.
template <class S, class Left, class Right>
S dot(std::int64_t n, const S& start, const S& divisor, Left&& left, Right&& right) {
  Sum<S> sum = matmul_sum<S>(n + 1);
  sum.add(start);
  for (std::int64_t i = 0; i < n; ++i) sum.add(matrix_term(left(i), right(i), divisor));
  return sum.value();
}

}  // namespace lossgate::reference
