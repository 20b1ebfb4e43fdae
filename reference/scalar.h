// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <utility>

#include "reference/real.h"
#include "reference/spec/dtype.h"
#include "reference/stores.h"
#include "reference/tracked.h"

/// What a formula may ask of its scalar type S beyond arithmetic and elementary functions. The
/// primary versions serve every type that has no opinion about rounding (Real, multiple precision,
/// dual numbers); the overloads for Tracked know what an implementation may make of it.
namespace lossgate::reference {

using std::exp;
using std::expm1;
using std::log;
using std::log1p;
using std::sqrt;
using std::tanh;

inline Real value_of(Real a) { return a; }

/// How scalars of type S enter a formula.
template <class S>
struct Entry {
  /// A stored element of a field; `key` identifies it among all differentiable entries.
  static S stored(double value, std::int64_t /*key*/) { return S(value); }
  /// An option or a literal, which the compute format may have to round.
  static S constant(Real value) { return S(value); }
};

template <>
struct Entry<Tracked> {
  static Tracked stored(double value, std::int64_t /*key*/) {
    if (value != value) return {value, tracking::kInfinity, tracking::kInfinity};
    const double size = std::fabs(value);
    return {value, size < tracking::current->flush ? size : 0.0, std::isinf(value) ? 0.0 : size,
            0.0};
  }
  static Tracked constant(Real value) {
    const bool exact = round_to(tracking::current->compute, static_cast<double>(value)) == value;
    const double size = tracking::magnitude(value);
    const double lost = size < tracking::current->flush ? size : 0.0;
    const double err = exact ? lost : tracking::roundoff(value) + tracking::current->eta;
    return tracking::finish(value, err, 0.0, 0.0);
  }
};

template <class S>
S constant(Real value) {
  return Entry<S>::constant(value);
}

/// The gradient does not flow into what is stopped.
template <class S>
S stop_gradient(const S& a) {
  return a;
}

/// The value of `forward` with the derivative of `backward`.
template <class S>
S straight_through(const S& forward, const S& /*backward*/) {
  return forward;
}

/// The wider charge of two forms of one value: for a form that is not declared.
template <class S>
S wider(const S& a, const S& /*b*/) {
  return a;
}

inline Tracked wider(const Tracked& a, const Tracked& b) {
  return {a.v, std::max(a.err, b.err), std::max(a.peak, b.peak), std::max(a.half, b.half)};
}

// ---- branches -----------------------------------------------------------------------------------
// A branch on computed values is undecided where the margin is within T times its own bound (B6):
// an implementation may go either way. Values of clamp, min and max hardly notice; derivatives may
// be anything between the one-sided ones.

enum class Order { below, equal, above, undecided };

/// What comparing scalars of type S gives.
template <class S>
struct OrderOf {
  using type = Order;
};

/// What a formula does one way or the other, by its numbers.
template <class Yes, class No>
[[gnu::always_inline]] inline auto choose(bool condition, Yes&& yes, No&& no) {
  return condition ? yes() : no();
}

template <class S>
Order compare(const S& a, const S& b) {
  return a < b ? Order::below : a > b ? Order::above : Order::equal;
}

/// Whether what overflows on the way to `a` may carry it beyond any number, upwards or downwards.
inline bool may_spill(const Tracked& a, bool upwards) {
  if (a.peak <= tracking::largest) return false;
  return !tracking::is_its_own_peak(a) || std::signbit(a.v) != upwards;
}

[[gnu::always_inline]] inline Order compare(const Tracked& a, const Tracked& b) {
  const double margin = static_cast<double>(a.v - b.v);
  const double bound = tracking::whole_reach(a) + tracking::whole_reach(b);
  if (std::fabs(margin) > bound) {
    const bool above = margin > 0.0;
    if (may_spill(a, !above) || may_spill(b, above)) return Order::undecided;
    return above ? Order::above : Order::below;
  }
  if (bound != 0.0) return Order::undecided;
  // A margin that is NaN is that of infinities of one sign, which compare equal.
  return tracking::current->ties_open && margin == 0.0 ? Order::undecided : Order::equal;
}

/// One of two values between which rounding decides; `first` is the exact one.
template <class S>
S either(const S& first, const S& /*second*/) {
  return first;
}

/// For continuous selections: the candidates agree at the kink, so the distance is an error.
inline Tracked either(const Tracked& first, const Tracked& second) {
  const double distance = tracking::magnitude(first.v - second.v);
  return tracking::finish(first.v, std::max(first.err, second.err) + distance,
                          std::max(first.peak, second.peak), std::max(first.half, second.half));
}

template <class S>
bool is_nan(const S& a) {
  return value_of(a) != value_of(a);
}

/// NaN wins, as in PyTorch.
template <class S>
S minimum(const S& a, const S& b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  switch (compare(a, b)) {
    case Order::above:
      return b;
    case Order::undecided:
      return value_of(a) <= value_of(b) ? either(a, b) : either(b, a);
    default:
      return a;
  }
}

template <class S>
S maximum(const S& a, const S& b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  switch (compare(a, b)) {
    case Order::below:
      return b;
    case Order::undecided:
      return value_of(a) >= value_of(b) ? either(a, b) : either(b, a);
    default:
      return a;
  }
}

template <class S>
S clamp(const S& a, const S& low, const S& high) {
  if (compare(a, low) == Order::above && compare(a, high) == Order::below) return a;
  return minimum(maximum(a, low), high);
}

/// A number that no arithmetic has to compute, such as a slope of 1 or of 1/2.
template <class S>
S selected(double value) {
  return S(value);
}

template <>
inline Tracked selected<Tracked>(double value) {
  return {value, 0.0, std::fabs(value), 0.0};
}

/// A derivative's factor that is `yes` or `no` or, undecided, anything between.
template <class S>
S switched(const typename OrderOf<S>::type& order, double below, double equal, double above) {
  switch (order) {
    case Order::below:
      return S(below);
    case Order::equal:
      return S(equal);
    case Order::above:
      return S(above);
    default:
      return S(equal);
  }
}

template <>
inline Tracked switched<Tracked>(const Order& order, double below, double equal, double above) {
  switch (order) {
    case Order::below:
      return selected<Tracked>(below);
    case Order::equal:
      return selected<Tracked>(equal);
    case Order::above:
      return selected<Tracked>(above);
    default:
      break;
  }
  const double low = std::min({below, equal, above}), high = std::max({below, equal, above});
  return {(low + high) / 2, 0.0, high, (high - low) / 2};
}

/// A derivative's factor that an undecided branch leaves open.
template <class S>
S anything_between(double /*low*/, double high) {
  return S(high);
}

template <>
inline Tracked anything_between<Tracked>(double low, double high) {
  return switched<Tracked>(Order::undecided, low, high, high);
}

/// |a|, exactly.
template <class S>
S absolute(const S& a) {
  return value_of(a) < 0 ? S(-a) : a;
}

/// 1 where a <= bound, else 0: the derivative of PyTorch's clamp, which passes the gradient on its
/// closed interval.
template <class S>
S at_most(const S& a, const S& bound) {
  return switched<S>(compare(a, bound), 1.0, 1.0, 0.0);
}

template <class S>
S at_least(const S& a, const S& bound) {
  return switched<S>(compare(a, bound), 0.0, 1.0, 1.0);
}

/// The share of the gradient that PyTorch's max(a, b) hands to a: half on a tie.
template <class S>
S share_of_maximum(const S& a, const S& b) {
  return switched<S>(compare(a, b), 0.0, 0.5, 1.0);
}

/// The derivative of clamp with respect to its argument.
template <class S>
S clamp_slope(const S& a, const S& low, const S& high) {
  const auto from_low = compare(a, low), from_high = compare(a, high);
  const auto at_low = [&] { return switched<S>(from_low, 0.0, 1.0, 1.0); };
  const auto at_high = [&] { return switched<S>(from_high, 1.0, 1.0, 0.0); };
  return choose(from_low == Order::above, at_high, [&] {
    return choose(from_high == Order::below, at_low, [&] { return at_low() * at_high(); });
  });
}

}  // namespace lossgate::reference
