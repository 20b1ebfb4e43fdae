// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/scalar.h"

/// Bounds of what is stored on the way (rule B1).
namespace lossgate::reference {

/// Whether what is stored so keeps all digits of the number.
[[gnu::always_inline]] inline bool holds(const Store& rule, double number) {
  const double size = std::fabs(number);
  if (rule.roundoff == 0.0 || size == 0.0) return true;
  const double spacing = std::max(std::ldexp(2.0 * rule.roundoff, std::ilogb(size)), rule.eta);
  return size <= rule.largest && std::remainder(size, spacing) == 0.0;
}

/// An option that bounds what is stored at that stage, before it is bounded or after. Rounding
/// keeps an order, so either is the stored number between stored bounds, of which the stage's
/// format may hold none.
template <class S>
S stored_bound(Stage /*stage*/, const S& bound, double /*option*/) {
  return bound;
}

inline Tracked stored_bound(Stage stage, const Tracked& bound, double option) {
  return holds(tracking::current->stage(stage), option) ? bound : store(stage, bound);
}

}  // namespace lossgate::reference
