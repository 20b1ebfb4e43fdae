// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/monotonic.h"

/// What a list of log-probs leaves of a distribution, by L, the logarithm of its mass. Where L is
/// above the floor, a number a little below 0, it counts as that, so that some tail is left. Both
/// functions are monotonic in L and in the floor alike.
namespace lossgate::reference {

/// log(1 - exp(min(L, floor)))
template <class S>
S log_tail(const S& log_mass, const S& floor) {
  return monotonic(
      []<class T>(const T& l, const T& most) { return T(log(-expm1(minimum(l, most)))); }, log_mass,
      floor);
}

/// The same where the tail is added up: `left`, the logarithm of the sum of what is not listed, or
/// that of the floor's tail, which only has to be no more.
template <class S>
S log_tail_of(const S& left, const S& floor) {
  return monotonic(
      []<class T>(const T& l, const T& least) { return maximum(l, T(log(maximum(least, T(0))))); },
      left, S(-expm1(floor)));
}

/// -d log_tail / d min(L, floor) = exp(l) / (1 - exp(l)): the derivative of expm1 is exp, which a
/// backward makes of what it has, expm1 + 1.
template <class S>
S tail_slope(const S& log_mass, const S& floor) {
  return monotonic(
      []<class T>(const T& l, const T& most) {
        const T bounded = minimum(l, most), less = expm1(bounded);
        return T(wider(T(exp(bounded)), T(less + constant<T>(1.0L))) / -less);
      },
      log_mass, floor);
}

}  // namespace lossgate::reference
