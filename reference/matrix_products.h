// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/products.h"
#include "reference/stores.h"
#include "reference/sums.h"

/// Products of matrices, charged as the arithmetic declares them (rule B1): formed and added up in
/// a format of their own, and rounded to the compute format.
namespace lossgate::reference {

/// A term of a matrix product, rounded as these are; where that is coarser than the compute format,
/// as in TF32, each factor is rounded before. A divisor that comes to the sum of such terms may
/// have come to either factor before: what that lost to underflow is multiplied by the other. One
/// of 1 rounds nothing. What underflows in a term before the sum is divided is the sum's to say.
template <class S>
S matrix_term(const S& a, const S& b, const S& /*divisor*/) {
  return a * b;
}

inline Tracked matrix_term(const Tracked& a, const Tracked& b, const Tracked& divisor) {
  using namespace tracking;
  const double unit = current->matmul.roundoff;
  Tracked result = unseen(times(a, b, unit), a, b);
  if (result.is_exact_zero() || is_stored_infinity(result)) return result;
  const double of_factors = unit > current->roundoff ? 2.0 * unit : 0.0;
  result.err += product(of_factors, magnitude(result.v) + result.half);
  if (divisor.v == 1.0L) return result;
  const double by = magnitude(divisor.v), larger = std::max(most(a), most(b));
  const double grown = product(current->eta, by * larger);
  result.err += or_infinity(roundoff(result.v, result.half) + grown);
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

/// sum of left(i) right(i) + start, logits that are charged as the arithmetic multiplies matrices:
/// the start is a term like the others, or is added to what they were stored as. All of it is going
/// to be divided, or each term was: a divisor below 1 has made all on the way as much larger.
template <class S, class Left, class Right>
S dot(std::int64_t n, const S& start, const S& divisor, Left&& left, Right&& right) {
  Sum<S> products = matmul_sum<S>(n + 1);
  for (std::int64_t i = 0; i < n; ++i) products.add(matrix_term(left(i), right(i), divisor));
  const auto value = [&](const Sum<S>& sum) {
    return value_of(divisor) == 1 ? sum.value() : sum.scaled(divisor);
  };
  if (value_of(start) == 0) return value(products);
  Sum<S> together = products;
  together.add(start);
  return wider(value(together), S(store(Stage::logits, value(products)) + start));
}

}  // namespace lossgate::reference
