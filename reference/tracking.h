// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/real.h"
#include "reference/spec/arithmetic.h"

namespace lossgate::reference {

/// A value together with what an implementation under a declared arithmetic may make of it
/// (rule B2; running error analysis after Higham, Accuracy and Stability of Numerical Algorithms,
/// 2nd ed., section 3.3):
///   v     the exact value, up to Real's own roundoff;
///   err   first-order bound of the implementation's absolute error;
///   peak  largest finite magnitude that an implementation may make of the operands that the result
///         depends on;
///   half  half-width of the interval of right answers, from branches that rounding may decide
///         either way (rule B6).
/// The arithmetic is the one of the innermost ArithmeticScope on this thread.
struct Tracked {
  Real v = 0.0L;
  double err = 0.0;
  double peak = 0.0;
  double half = 0.0;

  /// A zero that was stored or selected, not computed: it annihilates whatever it multiplies.
  bool is_exact_zero() const { return peak == 0.0 && v == 0.0L && err == 0.0 && half == 0.0; }
};

namespace tracking {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
inline constexpr double kFarBelowOverflow = std::numeric_limits<double>::max() / 16;

/// In an executable, which is where the reference lives, this spares every operation a call.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local const Arithmetic* current =
    nullptr;

/// The largest number of the current compute format.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local double largest = 0.0;

inline double magnitude(Real v) { return static_cast<double>(std::fabs(v)); }

/// 0 times infinity is no statement about an error: it is infinite.
inline double or_infinity(double bound) { return bound == bound ? bound : kInfinity; }
inline double product(double a, double b) { return or_infinity(a * b); }

/// A half-width of 0 says that nothing was undecided, whatever it is multiplied by; no other one
/// becomes 0 because a double underflows.
inline double scaled_half(double factor, double half) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  return half == 0.0 ? 0.0 : product(factor, half) + kLeast;
}

/// Asked of a double: the classification of a Real stores it and reads back a part of it, which
/// costs more than the rest of an operation. A Real beyond double's range has an infinite err.
inline bool is_stored_infinity(const Tracked& a) {
  return a.err == 0.0 && magnitude(a.v) == kInfinity;
}

/// What comes from a stored infinity is exact: an infinity, a zero, or NaN.
inline bool from_stored_infinity(const Tracked& a, const Tracked& b) {
  return is_stored_infinity(a) || is_stored_infinity(b);
}

/// How far an implementation's number may be from the value, undecided branches included.
inline double whole_reach(const Tracked& a) { return kThreshold * a.err + a.half; }

/// The largest magnitude that an implementation may make of a number of this size. Of an error
/// without end nothing is known.
inline double most(double size, double err, double half) {
  return size + half + (err < kInfinity ? kThreshold * err : 0.0);
}
inline double most(const Tracked& a) { return most(magnitude(a.v), a.err, a.half); }

/// Whether nothing on the way to the number is larger than itself: then it overflows with its own
/// sign. What the same magnitudes add up to in double may differ by their roundings.
inline bool is_its_own_peak(const Tracked& a) { return a.peak <= most(a) * (1.0 + 0x1p-30); }

/// A result whose sign is open where an operand's is, which beyond the format had either.
inline Tracked as_open(Tracked result, bool operand_is_open) {
  if (operand_is_open) result.peak = std::max(result.peak, most(result) * (1.0 + 0x1p-20));
  return result;
}
inline bool is_open(const Tracked& a) { return a.peak > largest && !is_its_own_peak(a); }
inline Tracked as_open(const Tracked& result, const Tracked& a, const Tracked& b) {
  return result.peak <= largest ? result : as_open(result, is_open(a) || is_open(b));
}

/// The result v of an operation on a stored infinity, which takes up the other operand's error. The
/// peak is that of finite operands: where one of them overflows, infinities meet.
inline Tracked from_infinity(Real v, const Tracked& a, const Tracked& b) {
  return {v, v == v ? 0.0 : kInfinity, std::max(a.peak, b.peak), or_infinity(a.half + b.half)};
}

/// Whether the number may be 0, by its error, that is not 0 itself.
inline bool may_vanish(const Tracked& a) {
  const double off = whole_reach(a);
  return off > 0.0 && magnitude(a.v) <= off;
}

/// Of a result within `half` of v: the largest of the right answers is rounded, too.
inline double roundoff(Real v, double half = 0.0) {
  return product(current->roundoff, magnitude(v) + half);
}

inline Tracked finish(Real v, double err, double peak, double half) {
  const double mv = magnitude(v);
  return {v, mv == mv ? or_infinity(err) : kInfinity,
          or_infinity(std::max(peak, most(mv, err, half))), or_infinity(half)};
}

/// The analysis is first order as long as an argument's own error is at most a tenth of the scale
/// on which the function bends (rule B4).
inline bool breaks(const Tracked& a, double scale) { return !(whole_reach(a) <= 0.1 * scale); }

/// How much steeper than at `a` a function that bends on that scale may be within a's own error:
/// first order up to a tenth of the scale, and no bound beyond the whole of it (rule B4).
inline double steeper(const Tracked& a, double scale) {
  if (!breaks(a, scale)) return 1.0;
  const double left = 1.0 - whole_reach(a) / scale;
  return left > 0.0 ? 1.0 / left : kInfinity;
}

/// f(a) = v with derivative `slope`, computed with relative error `factor` u.
inline Tracked apply(const Tracked& a, Real v, double slope, double factor, double scale) {
  const double growth = steeper(a, scale);
  if (growth < kInfinity) slope *= growth;
  const double half = scaled_half(slope, a.half);
  // In this order the roundoff of a tiny result does not itself underflow.
  const double rounding = product(factor * current->roundoff, magnitude(v) + half);
  double err = product(slope, a.err) + rounding + current->eta;
  if (growth == kInfinity) err = kInfinity;
  return finish(v, err, a.peak, half);
}

/// f(a) = v where f grows, and ever faster, and a's own error is beyond first order: what f makes
/// of the ends of what `a` may be, computed with relative error `factor` u (rule B4). Where a
/// function flattens, one error may take it as far as T do.
template <class F>
Tracked between_ends(const Tracked& a, Real v, double factor, const F& f) {
  const double off = whole_reach(a);
  const auto farthest = [&](double by) {
    const double above = magnitude(f(a.v + by) - v), below = magnitude(v - f(a.v - by));
    return std::max(or_infinity(above), or_infinity(below));
  };
  if (!(off < kInfinity)) return finish(v, kInfinity, a.peak, a.half == 0.0 ? 0.0 : kInfinity);
  const double half = a.half == 0.0 ? 0.0 : scaled_half(1.0, farthest(a.half));
  const double reach = farthest(off);
  const double rounding = product(factor * current->roundoff, magnitude(v) + reach);
  return finish(v, reach / kThreshold + rounding + current->eta, a.peak, half);
}

/// The largest slope that a function has within a's own error, where that is beyond first order, or
/// the one at `a`. `slope` is even, and falls on the way from 0.
template <class Slope>
double steepest(const Tracked& a, const Slope& slope) {
  const Real size = std::fabs(a.v);
  if (!breaks(a, 1.0)) return magnitude(slope(size));
  return magnitude(slope(std::max(size - whole_reach(a), 0.0L)));
}

/// Whether `a` is infinity less infinity, in any format or in the compute format: there, infinities
/// that meet on the way to a number that fits leave it a peak without end.
inline bool undefined(const Tracked& a) {
  return a.v != a.v || (a.peak == kInfinity && most(a) <= largest);
}

/// 0, which NaN is as right as where the other factor is undefined (rule C3).
inline Tracked zero_times(bool undefined) { return {0.0L, 0.0, undefined ? kInfinity : 0.0, 0.0}; }

/// What forming a product v of a and b costs beyond a multiplication. A factor that may overflow
/// makes of it a sum of logarithms, whose roundings are relative ones of its exp.
inline double overflowing_factor(const Tracked& a, const Tracked& b, Real v) {
  if (std::max(most(a), most(b)) <= largest || v == 0.0L) return 0.0;
  const auto size_of_logarithm = [](Real x) { return magnitude(std::log(std::fabs(x))); };
  const double sizes = size_of_logarithm(a.v) + size_of_logarithm(b.v) + size_of_logarithm(v);
  return product(current->roundoff * sizes, magnitude(v));
}

/// A sum of `terms` terms, of magnitude `size` together, which are all multiples of the factors,
/// where any of these may be applied last: before they make it smaller it may overflow, and they
/// make larger what each term lost to underflow before.
template <class... Factors>
Tracked scaled_last(Tracked sum, double terms, double size, const Factors&... factors) {
  if (is_stored_infinity(sum)) return sum;
  const double shrinking = (std::min(1.0, magnitude(factors.v)) * ...);
  // An error larger than the sum is underflow's, which no factor has made small.
  const double formed = std::min(tracking::most(size, sum.err, 0.0), 2.0 * size);
  if (formed > largest * shrinking) sum.peak = std::max(sum.peak, formed / shrinking);
  sum.err += terms * product(current->eta, (std::max(1.0, magnitude(factors.v)) * ...));
  return sum;
}

}  // namespace tracking

/// Selects the arithmetic that Tracked operations on this thread are charged to.
class ArithmeticScope {
 public:
  explicit ArithmeticScope(const Arithmetic& arithmetic) : outer_(tracking::current) {
    enter(&arithmetic);
  }
  explicit ArithmeticScope(const Arithmetic&&) = delete;  ///< would outlive what it points to
  ~ArithmeticScope() { enter(outer_); }
  ArithmeticScope(const ArithmeticScope&) = delete;
  ArithmeticScope& operator=(const ArithmeticScope&) = delete;

 private:
  static void enter(const Arithmetic* arithmetic) {
    tracking::current = arithmetic;
    if (arithmetic) tracking::largest = max_finite(arithmetic->compute);
  }

  const Arithmetic* outer_;
};

}  // namespace lossgate::reference
