// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/lanes/vectors.h"
#include "reference/scalar.h"

namespace lossgate::reference {
inline namespace LOSSGATE_LANES_NAMESPACE {

class Positions;

/// Tracked scalars of several positions at once, in double: the same analysis, operation by
/// operation. The declared arithmetic is charged so much more for each of them than double that v
/// is within kFilterSlack of err, and err within kFilterSlack of itself, of what Tracked has (rule
/// B9). What double cannot tell is a doubt: of a branch near its own edge, of what does not fit.
struct Lanes {
  Doubles v = {}, err = {}, peak = {}, half = {};

  Lanes() = default;
  explicit Lanes(double value) : v(all_lanes(value)) {}
  LOSSGATE_LANEWISE Lanes(Doubles v_in, Doubles err_in, Doubles peak_in, Doubles half_in)
      : v(v_in), err(err_in), peak(peak_in), half(half_in) {}

  LOSSGATE_LANEWISE Mask is_exact_zero() const { return peak + (err + half) == 0.0; }
  /// 1 or -1, stored or selected.
  LOSSGATE_LANEWISE Mask is_unit() const {
    return (peak == 1.0) & (err + half == 0.0) & (size_of_each(v) == 1.0);
  }
};

/// What lane-wise operations on this thread are charged to, which lanes count, and what is open.
struct LaneScope {
  LaneScope(const Arithmetic& arithmetic_in, const Positions& positions_in);
  ~LaneScope();
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

  const Arithmetic& arithmetic;
  const Positions& positions;
  double roundoff, eta, flush;
  double fits;  ///< what is no larger surely fits the compute format
  Mask live = ~Mask{};
  Mask doubt = {};
};

namespace lanes {

[[gnu::tls_model("initial-exec")]] inline constinit thread_local LaneScope* scope = nullptr;

}  // namespace lanes

inline LaneScope::LaneScope(const Arithmetic& arithmetic_in, const Positions& positions_in)
    : arithmetic(arithmetic_in),
      positions(positions_in),
      roundoff(arithmetic.roundoff),
      eta(arithmetic.eta),
      flush(arithmetic.flush),
      fits(max_finite(arithmetic.compute) * (1.0 - kFilterSlack)) {
  lanes::scope = this;
}

inline LaneScope::~LaneScope() { lanes::scope = nullptr; }

namespace lanes {

/// Hardly ever: a branch that is not taken costs less than to write down that there was none.
LOSSGATE_LANEWISE void doubt(Mask open) {
  if (any(open)) [[unlikely]] {
    scope->doubt |= open & scope->live;
  }
}

/// Doubts where something is not certainly so; NaN is not.
LOSSGATE_LANEWISE void require(Mask certain) { doubt(~certain); }

/// A half-width of 0 says that nothing was undecided, whatever it is multiplied by.
LOSSGATE_LANEWISE bool all_decided(const Lanes& a, const Lanes& b) {
  return !any(a.half + b.half != 0.0);
}

/// Whether a lane of either is exact, as zeros and units are.
LOSSGATE_LANEWISE bool any_exact(const Lanes& a, const Lanes& b) {
  return any((a.err + a.half == 0.0) | (b.err + b.half == 0.0));
}

/// tracking::most: of a number of this size.
LOSSGATE_LANEWISE Doubles most(Doubles size, Doubles err, Doubles half) {
  return size + kThreshold * err + half;
}
LOSSGATE_LANEWISE Doubles most(const Lanes& a) { return most(size_of_each(a.v), a.err, a.half); }

/// tracking::finish.
LOSSGATE_LANEWISE Lanes finish(Doubles v, Doubles err, Doubles peak, Doubles half) {
  return {v, err, larger(peak, most(size_of_each(v), err, half)), half};
}

LOSSGATE_LANEWISE Doubles rounding(Doubles v, Doubles half) {
  return scope->roundoff * (size_of_each(v) + half);
}

/// The first-order analysis must surely not break (tracking::breaks).
LOSSGATE_LANEWISE void require_first_order(const Lanes& a, Doubles scale) {
  require(kThreshold * a.err + a.half <= (0.1 - kFilterSlack) * scale);
}

/// f(a) = v with derivative `slope`, computed with relative error `factor` u.
LOSSGATE_LANEWISE Lanes apply(const Lanes& a, Doubles v, Doubles slope, Doubles factor,
                              Doubles scale) {
  require_first_order(a, scale);
  const Doubles half = slope * a.half, size = size_of_each(v);
  const Doubles err = slope * a.err + factor * (scope->roundoff * (size + half)) + scope->eta;
  return finish(v, err, a.peak, half);
}

/// An error that underflow is charged for in proportion to a must not hide its size.
LOSSGATE_LANEWISE void require_size(const Lanes& a) { require(a.err <= size_of_each(a.v) + 1.0); }

}  // namespace lanes

LOSSGATE_LANEWISE Doubles value_of(const Lanes& a) { return a.v; }

LOSSGATE_LANEWISE Lanes operator-(const Lanes& a) { return {-a.v, a.err, a.peak, a.half}; }

LOSSGATE_LANEWISE Lanes operator+(const Lanes& a, const Lanes& b) {
  const Doubles v = a.v + b.v, half = a.half + b.half;
  const Doubles rounding = lanes::rounding(v, half) + lanes::scope->flush;
  Mask rounds = ~Mask{};
  if (lanes::any_exact(a, b)) rounds = ~(a.is_exact_zero() | b.is_exact_zero());
  const Doubles err = a.err + b.err + or_zero(rounds, rounding);
  return lanes::finish(v, err, larger(a.peak, b.peak), half);
}

LOSSGATE_LANEWISE Lanes operator-(const Lanes& a, const Lanes& b) { return a + -b; }

LOSSGATE_LANEWISE Lanes operator*(const Lanes& a, const Lanes& b) {
  const Doubles v = a.v * b.v, ma = size_of_each(a.v), mb = size_of_each(b.v);
  Mask nonzero = ~Mask{}, rounds = ~Mask{};
  if (lanes::any_exact(a, b)) {
    nonzero = ~(a.is_exact_zero() | b.is_exact_zero());
    rounds = ~(a.is_unit() | b.is_unit());
  }
  Doubles half = {}, na = ma, nb = mb;
  if (!lanes::all_decided(a, b)) {
    half = or_zero(nonzero, ma * b.half + mb * a.half + a.half * b.half);
    na += a.half;
    nb += b.half;
  }
  const Doubles mv = ma * mb;
  // Logarithms (tracking::overflowing_factor) are left to long double.
  lanes::doubt(larger(lanes::most(a), lanes::most(b)) > lanes::scope->fits);
  const Doubles err = na * b.err + nb * a.err + kThreshold * a.err * b.err +
                      or_zero(rounds, lanes::scope->roundoff * (mv + half) + lanes::scope->eta);
  return {or_zero(nonzero, v), or_zero(nonzero, err),
          or_zero(nonzero, larger(larger(a.peak, b.peak), lanes::most(mv, err, half))), half};
}

LOSSGATE_LANEWISE Lanes operator/(const Lanes& a, const Lanes& b) {
  const Doubles v = a.v / b.v, mv = size_of_each(v), mb = size_of_each(b.v);
  const Mask nonzero = ~a.is_exact_zero();
  lanes::doubt((b.v == 0.0) | (nonzero & ~(mb <= lanes::scope->fits)));
  lanes::require_first_order(b, mb);
  const Doubles half = (a.half + mv * b.half) / mb;
  const Doubles err = a.err / mb + mv * (b.err / mb) + lanes::rounding(v, half) + lanes::scope->eta;
  return {or_zero(nonzero, v), or_zero(nonzero, err),
          or_zero(nonzero, larger(larger(a.peak, b.peak), lanes::most(mv, err, half))),
          or_zero(nonzero, half)};
}

// ---- elementary functions -----------------------------------------------------------------------

namespace lanes {
/// Where exp and its inverse are far from the edges of double.
inline constexpr double kLargestExponent = 600.0;
}  // namespace lanes

LOSSGATE_LANEWISE Lanes exp(const Lanes& a) {
  const Doubles size = size_of_each(a.v);
  lanes::require(size <= lanes::kLargestExponent);
  const auto [power, rest] = exp_parts(a.v);
  const Doubles v = power + power * rest;
  const MathLibrary& math = lanes::scope->arithmetic.math;
  return lanes::apply(a, v, v, math.exp + math.exp_slope * size, all_lanes(1.0));
}

LOSSGATE_LANEWISE Lanes expm1(const Lanes& a) {
  lanes::require(size_of_each(a.v) <= lanes::kLargestExponent);
  const auto [power, rest] = exp_parts(a.v);
  return lanes::apply(a, (power - 1.0) + power * rest, power + power * rest,
                      all_lanes(lanes::scope->arithmetic.math.expm1), all_lanes(1.0));
}

LOSSGATE_LANEWISE Lanes sigmoid(const Lanes& a) {
  lanes::require(size_of_each(a.v) <= lanes::kLargestExponent);
  const auto [power, rest] = exp_parts(-a.v);
  const Doubles v = 1.0 / (1.0 + (power + power * rest));
  lanes::require(v * lanes::scope->fits > 4.0);  // else it may be 0
  return lanes::apply(a, v, v * (1.0 - v), all_lanes(lanes::scope->arithmetic.math.sigmoid),
                      all_lanes(1.0));
}

}  // namespace LOSSGATE_LANES_NAMESPACE
}  // namespace lossgate::reference
