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

/// Where the square is not known to first order, its root is off by the root of what that is off.
inline Tracked root_of_squares(const Tracked& a) {
  if (a.is_exact_zero()) return a;
  if (!tracking::breaks(a, tracking::magnitude(a.v))) return sqrt(a);
  const Real v = std::sqrt(a.v);
  const double err =
      std::sqrt(kThreshold * a.err) / kThreshold + tracking::roundoff(v) + tracking::current->eta;
  return tracking::finish(v, err, a.peak, std::sqrt(a.half));
}

/// a / b where whoever computes b makes at least `floor` of it: a deviation and an epsilon, say.
template <class S>
S over_at_least(const S& a, const S& b, const S& /*floor*/) {
  return a / b;
}

/// As far as b's error may take it, the quotient is no steeper than at the floor.
inline Tracked over_at_least(const Tracked& a, const Tracked& b, const Tracked& floor) {
  using namespace tracking;
  const double size = magnitude(b.v);
  const double least =
      std::max(magnitude(floor.v) - kThreshold * floor.err, size - kThreshold * b.err - b.half);
  // A floor that the format loses is none: 0 / 0 is no number.
  if (!(least > 0.0)) return {a.v / b.v, kInfinity, kInfinity, 0.0};
  if (a.is_exact_zero() || !breaks(b, size)) return a / b;
  const Tracked quotient = a / Tracked{b.v, 0.0, b.peak, 0.0};
  const double growth = std::max(1.0, size / least), mv = magnitude(quotient.v);
  const double half = scaled_half(growth / size, a.half) + scaled_half(growth * mv / size, b.half);
  const double err = product(growth / size, a.err + product(mv, b.err)) +
                     roundoff(quotient.v, half) + current->eta;
  return finish(quotient.v, err, quotient.peak, half);
}

}  // namespace lossgate::reference
