// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/tracking.h"

/// Operations on tracked values.
namespace lossgate::reference {

inline Tracked operator-(const Tracked& a) { return {-a.v, a.err, a.peak, a.half}; }

// Sums and products are most of a formula: calling them costs a tenth of its time.
[[gnu::always_inline]] inline Tracked operator+(const Tracked& a, const Tracked& b) {
  if (a.is_exact_zero()) return b;
  if (b.is_exact_zero()) return a;
  const Real v = a.v + b.v;
  if (tracking::from_stored_infinity(a, b)) return tracking::from_infinity(v, a, b);
  const double half = a.half + b.half;
  const double err = a.err + b.err + tracking::roundoff(v, half) + tracking::current->flush;
  return tracking::as_open(tracking::finish(v, err, std::max(a.peak, b.peak), half), a, b);
}

inline Tracked operator-(const Tracked& a, const Tracked& b) { return a + -b; }

/// 1 or -1, stored or selected: multiplying by it rounds nothing.
inline bool is_unit(const Tracked& a) {
  return a.peak == 1.0 && a.err == 0.0 && a.half == 0.0 && std::fabs(a.v) == 1.0L;
}

namespace tracking {

/// a b, which is rounded with relative error `unit`.
[[gnu::always_inline]] inline Tracked times(const Tracked& a, const Tracked& b, double unit) {
  const Real v = a.v * b.v;
  if (a.err == 0.0 || b.err == 0.0) {  // else none of these
    if (a.is_exact_zero() || b.is_exact_zero()) return zero_times(undefined(a) || undefined(b));
    if (is_unit(a)) return {v, b.err, std::max(a.peak, b.peak), b.half};
    if (is_unit(b)) return {v, a.err, std::max(a.peak, b.peak), a.half};
    if (from_stored_infinity(a, b)) {
      return from_infinity(may_vanish(a) || may_vanish(b) ? kNan : v, a, b);
    }
  }
  const double ma = magnitude(a.v), mb = magnitude(b.v), mv = ma * mb;
  const double half =
      a.half == 0.0 && b.half == 0.0
          ? 0.0
          : scaled_half(ma, b.half) + scaled_half(mb, a.half) + scaled_half(a.half, b.half);
  // The half-widths are as far from the truth as the factors are from their ends. The product of
  // the errors counts where neither factor has a digit, as in the square of a difference that is
  // all rounding.
  const double err = (ma + a.half) * b.err + (mb + b.half) * a.err + kThreshold * a.err * b.err +
                     unit * (mv + half) + current->eta + overflowing_factor(a, b, v);
  const double peak = std::max({a.peak, b.peak, most(mv, err, half)});
  return as_open({v, or_infinity(err), or_infinity(peak), or_infinity(half)}, a, b);
}

}  // namespace tracking

[[gnu::always_inline]] inline Tracked operator*(const Tracked& a, const Tracked& b) {
  return tracking::times(a, b, tracking::current->roundoff);
}

inline Tracked operator/(const Tracked& a, const Tracked& b) {
  using namespace tracking;
  if (a.is_exact_zero() && b.v != 0.0L) return {};
  const Real v = a.v / b.v;
  if (from_stored_infinity(a, b)) return from_infinity(v, a, b);
  const double mv = magnitude(v), mb = magnitude(b.v);
  double half = scaled_half(1.0 / mb, a.half) + scaled_half(mv, scaled_half(1.0 / mb, b.half));
  const double growth = steeper(b, mb);
  if (growth > 1.0 && growth < kInfinity) half = scaled_half(growth, half);
  const double err =
      product(growth, or_infinity(a.err / mb) + product(mv, or_infinity(b.err / mb))) +
      roundoff(v, half) + current->eta;
  return as_open(finish(v, err, std::max(a.peak, b.peak), half), a, b);
}

inline Tracked& operator+=(Tracked& a, const Tracked& b) { return a = a + b; }
inline Tracked& operator-=(Tracked& a, const Tracked& b) { return a = a - b; }
inline Tracked& operator*=(Tracked& a, const Tracked& b) { return a = a * b; }

inline Tracked exp(const Tracked& a) {
  using namespace tracking;
  // Every exp returns exactly 0 for -infinity, and infinity for infinity. That 0 annihilates,
  // unless something on the way to the -infinity overflows and makes it NaN.
  if (is_stored_infinity(a)) {
    if (a.v > 0.0L) return a;
    return {0.0L, 0.0, a.peak <= largest ? 0.0 : a.peak, 0.0};
  }
  const Real v = std::exp(a.v);
  const MathLibrary& math = current->math;
  const double factor = math.exp + math.exp_slope * magnitude(a.v);
  Tracked result = breaks(a, 1.0) ? between_ends(a, v, factor, [](Real x) { return std::exp(x); })
                                  : apply(a, v, magnitude(v), factor, 1.0);
  // A result that is surely beyond double has a bound below that: a clip that is far away stays
  // decided, and what it leaves behind must be finite (rule C1).
  const auto least = [&] { return std::exp(a.v - whole_reach(a)); };
  if (std::isinf(magnitude(v)) && std::isinf(magnitude(least()))) result.err = kFarBelowOverflow;
  return result;
}

inline Tracked expm1(const Tracked& a) {
  const Real v = std::expm1(a.v);
  if (tracking::breaks(a, 1.0)) {
    return tracking::between_ends(a, v, tracking::current->math.expm1,
                                  [](Real x) { return std::expm1(x); });
  }
  return tracking::apply(a, v, tracking::magnitude(v + 1.0L), tracking::current->math.expm1, 1.0);
}

inline Tracked log(const Tracked& a) {
  const double ma = tracking::magnitude(a.v);
  return tracking::apply(a, std::log(a.v), 1.0 / ma, tracking::current->math.log, ma);
}

inline Tracked log1p(const Tracked& a) {
  const double m = tracking::magnitude(a.v + 1.0L);
  return tracking::apply(a, std::log1p(a.v), 1.0 / m, tracking::current->math.log1p, m);
}

inline Tracked sqrt(const Tracked& a) {
  const Real v = std::sqrt(a.v);
  return tracking::apply(a, v, 0.5 / tracking::magnitude(v), tracking::current->math.sqrt,
                         tracking::magnitude(a.v));
}

inline Tracked tanh(const Tracked& a) {
  const auto slope = [](Real x) { return 1.0L - std::tanh(x) * std::tanh(x); };
  return tracking::apply(a, std::tanh(a.v), tracking::steepest(a, slope),
                         tracking::current->math.tanh, tracking::kInfinity);
}

inline Tracked sigmoid(const Tracked& a) {
  const Real v = sigmoid(a.v);
  const auto slope = [](Real x) { return sigmoid(x) * sigmoid(-x); };
  Tracked result = tracking::apply(a, v, tracking::steepest(a, slope),
                                   tracking::current->math.sigmoid, tracking::kInfinity);
  // As 1 / (1 + exp(-a)), which PyTorch computes, it is 0 where that exp overflows.
  if (tracking::magnitude(v) * tracking::largest < 2.0) result.err += tracking::magnitude(v);
  return result;
}

inline Real value_of(const Tracked& a) { return a.v; }

}  // namespace lossgate::reference
