// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/matrix_products.h"
#include "reference/scalar.h"
#include "reference/sums.h"

/// A scalar that turns a loss's template into the worst implementation that a declared arithmetic
/// allows. Nothing but tests includes this file.
namespace lossgate::reference {

/// A number whose every operation errs by all that the arithmetic allows, in the direction that
/// leads farther from the truth, which it carries along. Where it still is at the truth it turns
/// to `turn`.
struct Adversary {
  Real truth = 0.0L, v = 0.0L;

  inline static thread_local Real turn = 1.0L;

  Adversary() = default;
  explicit Adversary(double value) : truth(value), v(value) {}
  Adversary(Real true_value, Real value) : truth(true_value), v(value) {}

  /// `exact` is the operation's result on the operands as they are.
  static Adversary off(Real true_value, Real exact, double allowed) {
    const Real away = exact > true_value ? 1.0L : exact < true_value ? -1.0L : turn;
    const Real moved = exact + away * allowed;
    return {true_value, std::isfinite(moved) ? moved : exact};
  }
  static double rounding(Real exact) {
    return tracking::current->roundoff * tracking::magnitude(exact);
  }
  /// Where a factor overflows: of the logarithms that are added, and of their sum.
  static double by_logarithms(Real a, Real b) {
    if (a * b == 0.0L || std::max(std::fabs(a), std::fabs(b)) <= tracking::largest) return 0.0;
    Real sizes = 0.0L;
    for (const Real x : {a, b, a * b}) sizes += std::fabs(std::log(std::fabs(x)));
    return static_cast<double>(sizes) * rounding(a * b);
  }

  bool is_exact(Real value) const { return truth == value && v == value; }
  bool is_unit() const { return is_exact(1.0L) || is_exact(-1.0L); }

  friend Adversary operator-(const Adversary& a) { return {-a.truth, -a.v}; }
  friend Adversary operator+(const Adversary& a, const Adversary& b) {
    if (a.is_exact(0.0L)) return b;
    if (b.is_exact(0.0L)) return a;
    return off(a.truth + b.truth, a.v + b.v, rounding(a.v + b.v) + tracking::current->flush);
  }
  friend Adversary operator-(const Adversary& a, const Adversary& b) { return a + -b; }
  /// a b, which is rounded with relative error `unit`.
  static Adversary times(const Adversary& a, const Adversary& b, double unit) {
    if (a.is_exact(0.0L) || b.is_exact(0.0L)) return {};
    const Real exact = a.v * b.v;
    const bool free = a.is_unit() || b.is_unit();
    const double rounded = unit * tracking::magnitude(exact) + tracking::current->eta;
    return off(a.truth * b.truth, exact, free ? 0.0 : rounded + by_logarithms(a.v, b.v));
  }
  friend Adversary operator*(const Adversary& a, const Adversary& b) {
    return times(a, b, tracking::current->roundoff);
  }
  friend Adversary operator/(const Adversary& a, const Adversary& b) {
    if (a.is_exact(0.0L) && b.v != 0.0L) return {};
    const Real exact = a.v / b.v;
    return off(a.truth / b.truth, exact, rounding(exact) + tracking::current->eta);
  }
  Adversary& operator+=(const Adversary& b) { return *this = *this + b; }
  Adversary& operator-=(const Adversary& b) { return *this = *this - b; }
  Adversary& operator*=(const Adversary& b) { return *this = *this * b; }
  friend bool operator<(const Adversary& a, const Adversary& b) { return a.v < b.v; }
  friend bool operator>(const Adversary& a, const Adversary& b) { return a.v > b.v; }

  /// f of the number, computed with relative error `factor` u; no library leaves f's range.
  template <class F>
  Adversary mapped(F&& f, double factor, Real low, Real high) const {
    const Real exact = f(v);
    Adversary result = off(f(truth), exact, factor * rounding(exact) + tracking::current->eta);
    result.v = std::clamp(result.v, low, high);
    return result;
  }
};

inline Real value_of(const Adversary& a) { return a.v; }

/// What it is and what it ought to be are bounded each by itself.
inline Adversary minimum(const Adversary& a, const Adversary& b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  return {std::min(a.truth, b.truth), std::min(a.v, b.v)};
}
inline Adversary maximum(const Adversary& a, const Adversary& b) { return -minimum(-a, -b); }

inline constexpr Real kNoBound = std::numeric_limits<Real>::infinity();

inline Adversary exp(const Adversary& a) {
  if (std::isinf(a.truth)) return a.truth < 0.0L ? Adversary() : a;
  const MathLibrary& math = tracking::current->math;
  const double factor = math.exp + math.exp_slope * tracking::magnitude(a.v);
  return a.mapped([](Real x) { return std::exp(x); }, factor, 0.0L, kNoBound);
}
inline Adversary expm1(const Adversary& a) {
  return a.mapped([](Real x) { return std::expm1(x); }, tracking::current->math.expm1, -1.0L,
                  kNoBound);
}
inline Adversary log(const Adversary& a) {
  return a.mapped([](Real x) { return std::log(x); }, tracking::current->math.log, -kNoBound,
                  kNoBound);
}
inline Adversary log1p(const Adversary& a) {
  return a.mapped([](Real x) { return std::log1p(x); }, tracking::current->math.log1p, -kNoBound,
                  kNoBound);
}
inline Adversary sqrt(const Adversary& a) {
  return a.mapped([](Real x) { return std::sqrt(x); }, tracking::current->math.sqrt, 0.0L,
                  kNoBound);
}
/// However far it errs, a sum of squares is not negative.
inline Adversary root_of_squares(const Adversary& a) {
  return sqrt(Adversary{a.truth, std::max(a.v, 0.0L)});
}
inline Adversary tanh(const Adversary& a) {
  return a.mapped([](Real x) { return std::tanh(x); }, tracking::current->math.tanh, -1.0L, 1.0L);
}
inline Adversary sigmoid(const Adversary& a) {
  return a.mapped([](Real x) { return sigmoid(x); }, tracking::current->math.sigmoid, 0.0L, 1.0L);
}

template <>
struct Entry<Adversary> {
  static Adversary stored(double value, std::int64_t /*key*/) {
    const double size = std::fabs(value);
    return Adversary::off(value, value, size < tracking::current->flush ? size : 0.0);
  }
  static Adversary constant(Real value) {
    const double stored = round_to(tracking::current->compute, static_cast<double>(value));
    return Adversary::off(value, value, stored == value ? 0.0 : Adversary::rounding(value));
  }
};

inline Adversary store(Stage stage, const Adversary& a) {
  const Store& rule = tracking::current->stage(stage);
  if (rule.roundoff == 0.0 || a.is_exact(0.0L)) return a;
  return Adversary::off(a.truth, a.v, rule.roundoff * tracking::magnitude(a.v) + rule.eta);
}

template <>
class Sum<Adversary> {
 public:
  explicit Sum(std::int64_t extent, const SumRule* rule = nullptr)
      : extent_(static_cast<double>(extent)), rule_(rule) {}

  void add(const Adversary& term) {
    if (term.is_exact(0.0L)) return;
    truth_.add(term.truth);
    sum_.add(term.v);
    magnitudes_ += tracking::magnitude(term.v);
    largest_ = std::max(largest_, term.v);
    smallest_ = std::min(smallest_, term.v);
    terms_ += 1.0;
  }

  Adversary value() const {
    if (terms_ == 0.0) return {};
    const SumRule& rule = rule_ ? *rule_ : tracking::current->sum;
    const double growth = std::min(rule.growth(extent_), terms_ - 1.0);
    const bool rounded = terms_ > 1.0 || (rule_ && rule_->roundoff < tracking::current->roundoff);
    const double last = rounded ? Adversary::rounding(sum_.value()) : 0.0;
    Adversary sum =
        Adversary::off(truth_.value(), sum_.value(), growth * rule.roundoff * magnitudes_ + last);
    // Rounding is monotonic: terms of one sign never sum to less than the largest of them.
    if (smallest_ >= 0.0L) sum.v = std::max(sum.v, largest_);
    if (largest_ <= 0.0L) sum.v = std::min(sum.v, smallest_);
    return sum;
  }

  template <class... Factors>
  Adversary scaled(const Factors&... /*factors*/) const {
    return value();
  }

  template <class... Factors>
  Adversary accumulated(std::int64_t parts, const Factors&... /*factors*/) const {
    const Adversary whole = value();
    if (parts <= 1 || terms_ == 0.0) return whole;
    const Store& rule = tracking::current->stage(Stage::accumulate);
    const double steps = static_cast<double>(parts) + 1.0;
    return Adversary::off(whole.truth, whole.v, steps * (rule.roundoff * magnitudes_ + rule.eta));
  }

  Adversary in_stored_parts(const Adversary& sum, Stage stage, std::int64_t parts) const {
    const Store& rule = tracking::current->stage(stage);
    if (rule.roundoff == 0.0 || terms_ == 0.0) return sum;
    const double steps = std::min(static_cast<double>(parts), terms_);
    return Adversary::off(sum.truth, sum.v, steps * (rule.roundoff * magnitudes_ + rule.eta));
  }

 private:
  CompensatedSum truth_, sum_;
  double extent_;
  const SumRule* rule_;
  Real largest_ = -kNoBound, smallest_ = kNoBound;
  double magnitudes_ = 0.0, terms_ = 0.0;
};

inline Adversary matrix_term(const Adversary& a, const Adversary& b, const Adversary& /*divisor*/) {
  return Adversary::times(a, b, tracking::current->matmul.roundoff);
}

template <>
inline Sum<Adversary> matmul_sum<Adversary>(std::int64_t extent) {
  return Sum<Adversary>(extent, &tracking::current->matmul);
}

}  // namespace lossgate::reference
