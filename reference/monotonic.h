// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>

#include "reference/scalar.h"

/// Functions that are held by their ends: monotonic ones, made of steps of which one has no bound
/// where an argument is beyond first order (rule B4).
namespace lossgate::reference {
namespace tracking {

/// The number without what it may be off by.
inline Tracked without_error(const Tracked& a) { return {a.v, 0.0, a.peak, 0.0}; }

/// How far undecided branches alone may take the number from its value.
inline double undecided_reach(const Tracked& a) { return a.half; }

/// Where a function's arguments take it from its value, moved down and up.
struct Ends {
  Real below, above;
  double from(Real v) const {
    return std::max(or_infinity(magnitude(above - v)), or_infinity(magnitude(v - below)));
  }
};

/// `at`, the function of numbers without their errors, as far off as these take it. Half an error
/// may take a function that flattens as far as the whole one: all of it counts, not its share of T.
inline Tracked within_ends(const Tracked& at, const Ends& whole, const Ends& undecided) {
  return finish(at.v, at.err + whole.from(at.v), at.peak, at.half + undecided.from(at.v));
}

}  // namespace tracking

/// f(a...), which is monotonic in its arguments: of several it grows with each, or falls.
template <class F, class S, class... More>
S monotonic(const F& f, const S& a, const More&... more) {
  return f(a, more...);
}

template <class F, std::same_as<Tracked>... More>
Tracked monotonic(const F& f, const Tracked& a, const More&... more) {
  using namespace tracking;
  const Tracked first_order = f(a, more...);
  if (first_order.err < kInfinity || is_nan(first_order)) return first_order;
  const auto ends = [&](const auto& reach) {
    return Ends{f(a.v - reach(a), (more.v - reach(more))...),
                f(a.v + reach(a), (more.v + reach(more))...)};
  };
  return within_ends(f(without_error(a), without_error(more)...), ends(whole_reach),
                     ends(undecided_reach));
}

/// The least that anyone has for a number of the formula.
template <class S>
double least_of(const S& /*a*/) {
  return 0.0;
}

inline double least_of(const Tracked& a) {
  return std::max(static_cast<double>(a.v) - tracking::whole_reach(a), 0.0);
}

/// log(a) of a number that nobody finds below `least`, however far sums may be off.
template <class S>
S log_from(const S& a, double /*least*/) {
  return log(a);
}

inline Tracked log_from(const Tracked& a, double least) {
  using namespace tracking;
  const Tracked first_order = log(a);
  if (first_order.err < kInfinity || is_nan(first_order)) return first_order;
  const auto ends = [&](const auto& reach) {
    const Real low = std::max<Real>(a.v - reach(a), least);
    return Ends{std::log(low), std::log(a.v + reach(a))};
  };
  return within_ends(log(without_error(a)), ends(whole_reach), ends(undecided_reach));
}

}  // namespace lossgate::reference
