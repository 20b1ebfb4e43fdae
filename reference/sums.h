// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "reference/scalar.h"

namespace lossgate::reference {

/// Neumaier's compensated sum (A. Neumaier, ZAMM 54, 1974): the error does not grow with the number
/// of terms.
class CompensatedSum {
 public:
  void add(Real x) {
    const Real sum = sum_ + x;
    if (sum - sum == 0.0L) {  // finite
      carry_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    }
    sum_ = sum;
  }
  Real value() const { return sum_ + carry_; }

 private:
  Real sum_ = 0.0L;
  Real carry_ = 0.0L;
};

/// The only way in which a formula adds up terms. `extent` is how many terms an implementation
/// adds, masked ones included: they add nothing, but they shape the tree.
template <class S>
class Sum {
 public:
  explicit Sum(std::int64_t /*extent*/) {}
  void add(const S& term) { total_ = total_ + term; }
  S value() const { return total_; }
  /// The sum when `parts` partial results are accumulated one after the other, each of which may
  /// be scaled by any of the factors last.
  template <class... Factors>
  S accumulated(std::int64_t /*parts*/, const Factors&... /*factors*/) const {
    return total_;
  }
  /// The sum where its terms, all multiples of the factors, may be added before they are multiplied
  /// by any of these.
  template <class... Factors>
  S scaled(const Factors&... /*factors*/) const {
    return total_;
  }
  /// The same sum of so many parts, where each may be stored at that stage, and their sum so far.
  S in_stored_parts(const S& sum, Stage /*stage*/, std::int64_t /*parts*/) const { return sum; }

 private:
  S total_ = S(0);
};

template <>
class Sum<Real> {
 public:
  explicit Sum(std::int64_t /*extent*/) {}
  void add(Real term) { total_.add(term); }
  Real value() const { return total_.value(); }
  template <class... Factors>
  Real accumulated(std::int64_t /*parts*/, const Factors&... /*factors*/) const {
    return value();
  }
  template <class... Factors>
  Real scaled(const Factors&... /*factors*/) const {
    return value();
  }
  Real in_stored_parts(Real sum, Stage /*stage*/, std::int64_t /*parts*/) const { return sum; }

 private:
  CompensatedSum total_;
};

template <>
class Sum<Tracked> {
 public:
  explicit Sum(std::int64_t extent, const SumRule* rule = nullptr)
      : extent_(static_cast<double>(extent)), rule_(rule) {}

  void add(const Tracked& term) {
    if (term.is_exact_zero()) return;
    if (tracking::is_stored_infinity(term)) {
      infinities_ = infinities_ + term;
      return;
    }
    total_.add(term.v);
    const double magnitude = tracking::magnitude(term.v);
    magnitudes_ += magnitude + term.half;
    (std::signbit(term.v) ? negative_ : positive_) += magnitude;
    err_ += term.err;
    half_ += term.half;
    peak_ = std::max(peak_, term.peak);
    open_ |= tracking::is_open(term);
    terms_ += 1.0;
  }

  /// An infinity that was stored is as exact in a sum of many terms as in one of two.
  Tracked value() const { return finite() + infinities_; }

  template <class... Factors>
  Tracked scaled(const Factors&... factors) const {
    if (terms_ == 0.0) return infinities_;
    const double size = std::max(positive_, negative_) + half_;
    return tracking::scaled_last(value(), terms_, size, factors...);
  }

  template <class... Factors>
  Tracked accumulated(std::int64_t parts, const Factors&... factors) const {
    Tracked whole = value();
    if constexpr (sizeof...(factors) > 0) whole = scaled(factors...);
    if (parts <= 1 || terms_ == 0.0 || tracking::is_stored_infinity(whole)) return whole;
    const Store& rule = tracking::current->stage(Stage::accumulate);
    const double steps = static_cast<double>(parts) + 1.0;  // and the average over ranks, undone
    return tracking::finish(
        whole.v, whole.err + steps * (tracking::product(rule.roundoff, magnitudes_) + rule.eta),
        whole.peak, whole.half);
  }

  Tracked in_stored_parts(const Tracked& sum, Stage stage, std::int64_t parts) const {
    const Store& rule = tracking::current->stage(stage);
    if (rule.roundoff == 0.0 || terms_ == 0.0 || tracking::is_stored_infinity(sum)) return sum;
    const double steps = std::min(static_cast<double>(parts), terms_);
    const double lost = tracking::product(compounded(steps * rule.roundoff), magnitudes_);
    return tracking::finish(sum.v, sum.err + lost + steps * rule.eta, sum.peak, sum.half);
  }

  /// The largest that one sign's terms may add up to.
  double largest_partial() const {
    return tracking::most(std::max(positive_, negative_), err_, half_);
  }

 private:
  /// Without the infinities that were stored.
  Tracked finite() const {
    if (terms_ == 0.0) return {};
    const SumRule& rule = rule_ ? *rule_ : tracking::current->sum;
    // Adding a zero is exact, so no term meets more roundings than there are other terms.
    const double growth = std::min(rule.growth(extent_), terms_ - 1.0);
    const Real v = total_.value();
    // A single term that is wider than the compute format is rounded, too.
    const bool wider = rule_ && rule_->roundoff < tracking::current->roundoff;
    const double lost = terms_ > 1.0 || wider ? tracking::roundoff(v, half_) : 0.0;
    const double rounding = lost + (terms_ - 1.0) * tracking::current->flush;
    const double err =
        err_ + tracking::product(compounded(growth * rule.roundoff), magnitudes_ + err_) + rounding;
    const double partial = tracking::most(std::max(positive_, negative_), err, half_);
    return tracking::as_open(tracking::finish(v, err, std::max(peak_, partial), half_), open_);
  }

  /// (1 + u)^n - 1, given n u: thousands of additions in a 16-bit format compound, on what was
  /// computed, which is the terms with their errors.
  static double compounded(double nu) { return nu < 0x1p-7 ? nu : std::expm1(nu); }

  CompensatedSum total_;
  double extent_;
  const SumRule* rule_;
  double magnitudes_ = 0.0, positive_ = 0.0, negative_ = 0.0;
  double err_ = 0.0, half_ = 0.0, peak_ = 0.0, terms_ = 0.0;
  bool open_ = false;
  Tracked infinities_;
};

/// The mean of those positions that count, which an implementation may make of the mean of all, the
/// others being zeros, of which they are so many times fewer: what that lost to underflow grows.
template <class S>
S made_of_mean_of_all(const S& mean, double /*times*/) {
  return mean;
}

inline Tracked made_of_mean_of_all(Tracked mean, double times) {
  if (mean.is_exact_zero() || tracking::is_stored_infinity(mean)) return mean;
  mean.err += times * tracking::current->eta;
  return mean;
}

/// The mean of terms that were divided one by one, by so much at most; an implementation may divide
/// their sum.
template <class S>
S divided_last(const S& mean, const Sum<S>& /*terms*/, double /*divisor*/) {
  return mean;
}

inline Tracked divided_last(Tracked mean, const Sum<Tracked>& terms, double divisor) {
  if (!tracking::current->divides_last || tracking::is_stored_infinity(mean)) return mean;
  const double sum = tracking::product(terms.largest_partial(), divisor);
  if (sum > tracking::largest) mean.peak = std::max(mean.peak, sum);
  return mean;
}

/// a - b of two sums, or of means, that are added up apart: where both overflow on the way it is
/// infinity less infinity, however near they are.
template <class S>
S difference_of_sums(const S& a, const S& b) {
  return a - b;
}

inline Tracked difference_of_sums(const Tracked& a, const Tracked& b) {
  Tracked difference = a - b;
  const bool undefined = std::min(a.peak, b.peak) > tracking::largest;
  if (undefined) difference.peak = tracking::kInfinity;
  return difference;
}

/// The sum of a few terms, charged as the order of its additions that costs the most: a formula
/// fixes none (rule B2).
template <class S, std::size_t kTerms>
S sum_in_any_order(const std::array<S, kTerms>& terms) {
  std::array<S, std::size_t{1} << kTerms> of_set;  // by the terms that are in it, one bit each
  for (std::size_t set = 1; set < of_set.size(); ++set) {
    const std::size_t last = std::bit_floor(set);
    if (set == last) {
      of_set[set] = terms[static_cast<std::size_t>(std::countr_zero(set))];
      continue;
    }
    // Every way to add it up from two parts, of which one has the last term.
    const std::size_t others = set ^ last;
    of_set[set] = of_set[others] + of_set[last];
    for (std::size_t part = (others - 1) & others; part > 0; part = (part - 1) & others) {
      of_set[set] = wider(of_set[set], S(of_set[part] + of_set[set ^ part]));
    }
  }
  return of_set.back();
}

}  // namespace lossgate::reference
