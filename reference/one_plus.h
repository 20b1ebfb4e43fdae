// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "reference/scalar.h"

namespace lossgate::reference {

/// 1 + x for an option x or its negative, rounded once, or made of the option as the format has it
/// (rule B2). Where the format holds both nothing is rounded.
template <class S>
S one_plus(Real x) {
  return constant<S>(1.0L + x);
}

template <>
inline Tracked one_plus<Tracked>(Real x) {
  Tracked sum = constant<Tracked>(1.0L + x);
  const Tracked option = constant<Tracked>(x);
  sum.err += option.err;
  sum.peak = std::max({sum.peak, option.peak, tracking::most(sum)});
  return sum;
}

}  // namespace lossgate::reference
