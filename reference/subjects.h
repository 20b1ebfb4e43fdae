// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/losses/linear.h"
#include "reference/scalar.h"
#include "reference/sums.h"

/// Two scalars that turn a loss's template into an implementation which keeps a declared
/// arithmetic, so that tests can hold the reference's bounds against it. Both read the arithmetic
/// of the innermost ArithmeticScope, as Tracked does. Nothing but tests includes this file.
namespace lossgate::reference {

/// The format whose unit roundoff this is.
inline Dtype format_of(double roundoff) {
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    if (roundoff <= unit_roundoff(dtype)) return dtype;
  }
  return Dtype::bf16;
}

// ---- Textbook -----------------------------------------------------------------------------------

/// A number of the compute format: every operation is rounded to it. The chain rule does not
/// multiply a selected zero, so a zero annihilates.
struct Textbook {
  double v = 0.0;

  Textbook() = default;
  explicit Textbook(double value) : v(value) {}
  static Textbook rounded(double exact) {
    return Textbook(round_to(tracking::current->compute, exact));
  }

  friend Textbook operator-(Textbook a) { return Textbook(-a.v); }
  friend Textbook operator+(Textbook a, Textbook b) { return rounded(a.v + b.v); }
  friend Textbook operator-(Textbook a, Textbook b) { return rounded(a.v - b.v); }
  friend Textbook operator*(Textbook a, Textbook b) {
    return a.v == 0.0 || b.v == 0.0 ? Textbook() : rounded(a.v * b.v);
  }
  friend Textbook operator/(Textbook a, Textbook b) { return rounded(a.v / b.v); }
  Textbook& operator+=(Textbook b) { return *this = *this + b; }
  Textbook& operator-=(Textbook b) { return *this = *this - b; }
  Textbook& operator*=(Textbook b) { return *this = *this * b; }
  friend bool operator<(Textbook a, Textbook b) { return a.v < b.v; }
  friend bool operator>(Textbook a, Textbook b) { return a.v > b.v; }
};

inline double value_of(Textbook a) { return a.v; }

/// Code that is built on exp2 declares a slope: x log2(e) is rounded before it is exponentiated.
inline Textbook exp(Textbook a) {
  if (tracking::current->math.exp_slope == 0.0) return Textbook::rounded(std::exp(a.v));
  constexpr double kLog2E = 1.4426950408889634;
  return Textbook::rounded(std::exp2((a * Textbook::rounded(kLog2E)).v));
}
inline Textbook expm1(Textbook a) { return Textbook::rounded(std::expm1(a.v)); }
inline Textbook log(Textbook a) { return Textbook::rounded(std::log(a.v)); }
inline Textbook log1p(Textbook a) { return Textbook::rounded(std::log1p(a.v)); }
inline Textbook sqrt(Textbook a) { return Textbook::rounded(std::sqrt(a.v)); }
inline Textbook tanh(Textbook a) { return Textbook::rounded(std::tanh(a.v)); }
inline Textbook sigmoid(Textbook a) { return Textbook::rounded(1.0 / (1.0 + std::exp(-a.v))); }

template <>
struct Entry<Textbook> {
  static Textbook stored(double value, std::int64_t /*key*/) { return Textbook(value); }
  static Textbook constant(Real value) { return Textbook::rounded(static_cast<double>(value)); }
};

inline Textbook store(Stage stage, Textbook a) {
  const Store& rule = tracking::current->stage(stage);
  return rule.roundoff == 0.0 ? a : Textbook(round_to(format_of(rule.roundoff), a.v));
}

/// Adds up in the declared order.
template <>
class Sum<Textbook> {
 public:
  explicit Sum(std::int64_t /*extent*/, const SumRule* rule = nullptr) : rule_(rule) {}

  void add(Textbook term) { terms_.push_back(term.v); }
  Textbook value() const { return total(terms_); }

  Textbook accumulated(std::int64_t parts) const {
    if (parts <= 1) return value();
    const Dtype format = format_of(tracking::current->stage(Stage::accumulate).roundoff);
    double sum = 0.0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto border = [&](std::int64_t k) {
        return terms_.size() * static_cast<std::size_t>(k) / static_cast<std::size_t>(parts);
      };
      const std::size_t first = border(part);
      const double own = total(std::span(terms_).subspan(first, border(part + 1) - first)).v;
      sum = round_to(format, sum + round_to(format, own));
    }
    return Textbook(sum);
  }

 private:
  Textbook total(std::span<const double> terms) const {
    if (terms.empty()) return {};
    if (terms.size() == 1) return Textbook(terms[0]);
    const SumRule& rule = rule_ ? *rule_ : tracking::current->sum;
    const Dtype format = format_of(rule.roundoff);
    const auto width = static_cast<std::size_t>(rule.width);
    switch (rule.order) {
      case SumOrder::pairwise:
        return Textbook::rounded(pairwise(terms, format));
      case SumOrder::lanes:
        return Textbook::rounded(lanes(terms, width, format));
      case SumOrder::blocked:
      case SumOrder::online:
        return Textbook::rounded(blocked(terms, width, format));
      case SumOrder::sequential:
      case SumOrder::unknown:
        break;
    }
    return Textbook::rounded(blocked(terms, 1, format));
  }

  static double pairwise(std::span<const double> terms, Dtype format) {
    if (terms.empty()) return 0.0;
    if (terms.size() == 1) return terms[0];
    const std::size_t middle = (terms.size() + 1) / 2;
    return round_to(
        format, pairwise(terms.first(middle), format) + pairwise(terms.subspan(middle), format));
  }

  static double lanes(std::span<const double> terms, std::size_t width, Dtype format) {
    std::vector<double> sums(width, 0.0);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      sums[i % width] = round_to(format, sums[i % width] + terms[i]);
    }
    return pairwise(sums, format);
  }

  static double blocked(std::span<const double> terms, std::size_t width, Dtype format) {
    double sum = 0.0;
    for (std::size_t first = 0; first < terms.size(); first += width) {
      const std::size_t count = std::min(width, terms.size() - first);
      sum = round_to(format, sum + pairwise(terms.subspan(first, count), format));
    }
    return sum;
  }

  const SumRule* rule_;
  std::vector<double> terms_;
};

template <>
inline Sum<Textbook> matmul_sum<Textbook>(std::int64_t extent) {
  return Sum<Textbook>(extent, &tracking::current->matmul);
}

// ---- Adversary ----------------------------------------------------------------------------------

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

  bool is_exact(Real value) const { return truth == value && v == value; }
  bool is_unit() const { return is_exact(1.0L) || is_exact(-1.0L); }

  friend Adversary operator-(const Adversary& a) { return {-a.truth, -a.v}; }
  friend Adversary operator+(const Adversary& a, const Adversary& b) {
    if (a.is_exact(0.0L)) return b;
    if (b.is_exact(0.0L)) return a;
    return off(a.truth + b.truth, a.v + b.v, rounding(a.v + b.v));
  }
  friend Adversary operator-(const Adversary& a, const Adversary& b) { return a + -b; }
  friend Adversary operator*(const Adversary& a, const Adversary& b) {
    if (a.is_exact(0.0L) || b.is_exact(0.0L)) return {};
    const Real exact = a.v * b.v;
    const bool free = a.is_unit() || b.is_unit();
    return off(a.truth * b.truth, exact, free ? 0.0 : rounding(exact) + tracking::current->eta);
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
inline Adversary tanh(const Adversary& a) {
  return a.mapped([](Real x) { return std::tanh(x); }, tracking::current->math.tanh, -1.0L, 1.0L);
}
inline Adversary sigmoid(const Adversary& a) {
  return a.mapped([](Real x) { return sigmoid(x); }, tracking::current->math.sigmoid, 0.0L, 1.0L);
}

template <>
struct Entry<Adversary> {
  static Adversary stored(double value, std::int64_t /*key*/) { return Adversary(value); }
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
    const double last = terms_ > 1.0 ? Adversary::rounding(sum_.value()) : 0.0;
    Adversary sum =
        Adversary::off(truth_.value(), sum_.value(), growth * rule.roundoff * magnitudes_ + last);
    // Rounding is monotonic: terms of one sign never sum to less than the largest of them.
    if (smallest_ >= 0.0L) sum.v = std::max(sum.v, largest_);
    if (largest_ <= 0.0L) sum.v = std::min(sum.v, smallest_);
    return sum;
  }

  Adversary accumulated(std::int64_t parts) const {
    const Adversary whole = value();
    if (parts <= 1 || terms_ == 0.0) return whole;
    const Store& rule = tracking::current->stage(Stage::accumulate);
    const double steps = static_cast<double>(parts) + 1.0;
    return Adversary::off(whole.truth, whole.v, steps * (rule.roundoff * magnitudes_ + rule.eta));
  }

 private:
  CompensatedSum truth_, sum_;
  double extent_;
  const SumRule* rule_;
  Real largest_ = -kNoBound, smallest_ = kNoBound;
  double magnitudes_ = 0.0, terms_ = 0.0;
};

template <>
inline Sum<Adversary> matmul_sum<Adversary>(std::int64_t extent) {
  return Sum<Adversary>(extent, &tracking::current->matmul);
}

}  // namespace lossgate::reference
