// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/scalar.h"

/// Standard deviations, and what is divided by them. Where all numbers are equal the deviation is
/// nothing but rounding, and its error is not small beside it; but it is no negative number, and
/// what is added to it is a floor.
namespace lossgate::reference {

/// sqrt of what no implementation computes as a negative number: a sum of squares.
template <class S>
S root_of_squares(const S& a) {
  return sqrt(a);
}

/// What an implementation takes the root of is not negative either.
inline Tracked root_of_squares(const Tracked& a) {
  if (a.is_exact_zero()) return a;
  const double size = tracking::magnitude(a.v), d = kThreshold * a.err;
  const double v = std::sqrt(size);
  const double above = d / (v + std::sqrt(size + d)),
               off = d < size ? d / (v + std::sqrt(size - d)) : std::max(v, above);
  const double half = std::sqrt(a.half);
  const double rounding = tracking::product(
      tracking::current->math.sqrt * tracking::current->roundoff, v + std::sqrt(d) + half);
  return tracking::finish(std::sqrt(a.v), off / kThreshold + rounding + tracking::current->eta,
                          a.peak, half);
}

/// A number less itself: 0, whether anyone looks at it or not, so that NaN may be as right.
template <class S>
S less_itself(const S& a) {
  return a - a;
}

inline Tracked less_itself(const Tracked& a) {
  return tracking::zero_times(!std::isfinite(a.v) || a.peak > tracking::largest);
}

/// `zero`, as the difference of two products that are both `product`: contracted, to a fused
/// multiply-add, it leaves of them what the one that is formed was rounded by.
template <class S>
S of_equal_products(const S& zero, const S& /*product*/) {
  return zero;
}

inline Tracked of_equal_products(const Tracked& zero, const Tracked& product) {
  using namespace tracking;
  if (!(most(product) <= largest)) return zero;
  const double left = roundoff(product.v, product.half) + current->eta;
  return finish(zero.v, zero.err + left, zero.peak, zero.half);
}

/// a / b where whoever computes b makes at least `floor` of it: a deviation and an epsilon, say.
template <class S>
S over_at_least(const S& a, const S& b, const S& /*floor*/) {
  return a / b;
}

/// Where the squares overflow on the way to b, that is infinite, and the quotient is 0.
inline Tracked over_what_may_overflow(Tracked quotient, const Tracked& b) {
  if (b.peak > tracking::largest) quotient.err += tracking::magnitude(quotient.v);
  return quotient;
}

/// As far as b's error may take it, the quotient is no steeper than at the floor.
inline Tracked over_at_least(const Tracked& a, const Tracked& b, const Tracked& floor) {
  using namespace tracking;
  const double size = magnitude(b.v);
  const double least = std::max(magnitude(floor.v) - whole_reach(floor), size - whole_reach(b));
  // A floor that the format loses is none: 0 / 0 is no number.
  if (!(least > 0.0)) return {a.v / b.v, kInfinity, kInfinity, 0.0};
  if (a.is_exact_zero()) return a / b;
  if (!breaks(b, size)) return over_what_may_overflow(a / b, b);
  const Tracked quotient = a / Tracked{b.v, 0.0, b.peak, 0.0};
  const double growth = std::max(1.0, size / least), mv = magnitude(quotient.v);
  const double half = scaled_half(growth / size, a.half) + scaled_half(growth * mv / size, b.half);
  const double err = product(growth / size, a.err + product(mv, b.err)) +
                     roundoff(quotient.v, half) + current->eta;
  return over_what_may_overflow(finish(quotient.v, err, quotient.peak, half), b);
}

}  // namespace lossgate::reference
