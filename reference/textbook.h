// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/matrix_products.h"
#include "reference/scalar.h"
#include "reference/sums.h"

/// A scalar that turns a loss's template into an implementation which keeps a declared arithmetic,
/// so that tests can hold the reference's bounds against it. It reads the arithmetic of the
/// innermost ArithmeticScope, as Tracked does. Nothing but tests includes this file.
namespace lossgate::reference {

/// The format whose unit roundoff this is.
inline Dtype format_of(double roundoff) {
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    if (roundoff <= unit_roundoff(dtype)) return dtype;
  }
  return Dtype::bf16;
}

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

  template <class... Factors>
  Textbook scaled(const Factors&... /*factors*/) const {
    return value();
  }

  template <class... Factors>
  Textbook accumulated(std::int64_t parts, const Factors&... /*factors*/) const {
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

  Textbook in_stored_parts(const Textbook& sum, Stage /*stage*/, std::int64_t /*parts*/) const {
    return sum;
  }

 private:
  Textbook total(std::span<const double> terms) const {
    if (terms.empty()) return {};
    if (terms.size() == 1) return Textbook::rounded(terms[0]);
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

/// In the format in which products of matrices are formed, from which their sum is rounded.
inline Textbook matrix_term(const Textbook& a, const Textbook& b, const Textbook& /*divisor*/) {
  if (a.v == 0.0 || b.v == 0.0) return {};
  return Textbook(round_to(format_of(tracking::current->matmul.roundoff), a.v * b.v));
}

template <>
inline Sum<Textbook> matmul_sum<Textbook>(std::int64_t extent) {
  return Sum<Textbook>(extent, &tracking::current->matmul);
}

}  // namespace lossgate::reference
