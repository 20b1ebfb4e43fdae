// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "reference/products.h"

namespace lossgate::reference {

/// c x^2 w ..., in any order but those that square x first: what c makes small may be a square that
/// overflows.
template <class S, class... More>
S scaled_square(const S& c, const S& x, const More&... more) {
  return ((c * x * x) * ... * more);
}

template <class... More>
Tracked scaled_square(const Tracked& c, const Tracked& x, const More&... more) {
  const Tracked in_order = ((c * x * x) * ... * more);
  if (tracking::is_stored_infinity(x)) return in_order;
  Tracked result = product(c, x, x, more...);
  if (result.is_exact_zero()) return result;
  result.peak = std::max(in_order.peak, product(x, c, more...).peak);
  return result;
}

}  // namespace lossgate::reference
