// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/products.h"

/// What is known of squares whose numbers overflow or underflow when they are squared.
namespace lossgate::reference {

/// x, as the slope of x^2 / 2: an implementation that squares (x / 2) x hands on x / 2 from either
/// side, and the one that it has formed may have underflowed.
template <class S>
S slope_of_half_square(const S& x) {
  const S one = selected<S>(1.0);
  return weighted_within(x, one, one);
}

/// The share of the gradient that max(a^2, b^2) hands to a. Squares that overflow, or that
/// underflow, are equal to whoever compares them; the sizes of a and b are not.
template <class S>
S share_of_larger_square(const S& a, const S& b) {
  const auto size = [](const S& x) { return value_of(x) < 0 ? S(-x) : x; };
  return share_of_maximum(size(a), size(b));
}

template <>
inline Tracked share_of_larger_square(const Tracked& a, const Tracked& b) {
  using namespace tracking;
  const double ma = magnitude(a.v) + a.half, mb = magnitude(b.v) + b.half;
  const double normal = current->eta / current->roundoff, less = std::min(ma, mb);
  const bool equal = less * less > largest / 2 || std::max(ma, mb) * std::max(ma, mb) < normal;
  if (equal && less > 0.0) return switched<Tracked>(Order::undecided, 0.0, 0.5, 1.0);
  const auto size = [](const Tracked& x) { return std::signbit(x.v) ? -x : x; };
  return share_of_maximum(size(a), size(b));
}

}  // namespace lossgate::reference
