// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/lanes/products.h"
#include "reference/sums.h"

namespace lossgate::reference {

/// The sum over all lanes that are live when they are added, in each lane alike.
template <>
class Sum<Lanes> {
 public:
  explicit Sum(std::int64_t extent) : extent_(static_cast<double>(extent)) {}

  LOSSGATE_LANEWISE void add(const Lanes& term) {
    const Mask counts = lanes::scope->live & ~term.is_exact_zero();
    const Doubles x = or_zero(counts, term.v), size = size_of_each(x);
    // Knuth's exact sum of two, without a branch.
    const Doubles sum = total_ + x, part = sum - total_;
    carry_ += (total_ - (sum - part)) + (x - part);
    total_ = sum;
    magnitudes_ += or_zero(counts, size + term.half);
    positive_ += or_zero(x > 0.0, size);
    negative_ += or_zero(x < 0.0, size);
    err_ += or_zero(counts, term.err);
    half_ += or_zero(counts, term.half);
    peak_ = larger(peak_, or_zero(counts, term.peak));
    terms_ -= counts;  // a mask that is set is -1
  }

  Lanes value() const {
    const Whole all = whole();
    if (all.terms == 0.0) return {};
    const double growth = std::min(lanes::scope->arithmetic.sum.growth(extent_), all.terms - 1.0);
    const double size = std::fabs(all.value);
    const double rounding = all.terms > 1.0 ? lanes::scope->roundoff * (size + all.half) +
                                                  (all.terms - 1.0) * lanes::scope->flush
                                            : 0.0;
    const double nu = growth * lanes::scope->arithmetic.sum.roundoff;
    const double compounded = nu < 0x1p-7 ? nu : std::expm1(nu);
    const double err = all.err + compounded * (all.magnitudes + all.err) + rounding;
    const double partial = std::max(all.positive, all.negative) + kThreshold * err + all.half;
    const double peak = std::max(all.peak, partial);
    return {all_lanes(all.value), all_lanes(err), all_lanes(peak), all_lanes(all.half)};
  }

  template <class... Factors>
  Lanes scaled(const Factors&... factors) const {
    const Whole all = whole();
    if (all.terms == 0.0) return {};
    const double size = std::max(all.positive, all.negative) + all.half;
    return lanes::scaled_last(value(), all_lanes(all.terms), all_lanes(size), factors...);
  }

  template <class... Factors>
  Lanes accumulated(std::int64_t parts, const Factors&... factors) const {
    Lanes result = value();
    if constexpr (sizeof...(factors) > 0) result = scaled(factors...);
    const Whole all = whole();
    if (parts <= 1 || all.terms == 0.0) return result;
    const Store& rule = lanes::scope->arithmetic.stage(Stage::accumulate);
    const double steps = static_cast<double>(parts) + 1.0;  // and the average over ranks, undone
    result.err += steps * (rule.roundoff * all.magnitudes + rule.eta);
    result.peak = larger(result.peak, lanes::most(result));
    return result;
  }

 private:
  struct Whole {
    double value = 0.0, magnitudes = 0.0, positive = 0.0, negative = 0.0, err = 0.0, half = 0.0,
           peak = 0.0, terms = 0.0;
  };

  /// The lanes together.
  Whole whole() const {
    Whole all;
    double carry = 0.0;
    for (int i = 0; i < kLanes; ++i) {
      const double sum = all.value + total_[i], part = sum - all.value;
      carry += (all.value - (sum - part)) + (total_[i] - part) + carry_[i];
      all.value = sum;
      all.magnitudes += magnitudes_[i];
      all.positive += positive_[i];
      all.negative += negative_[i];
      all.err += err_[i];
      all.half += half_[i];
      all.peak = std::max(all.peak, peak_[i]);
      all.terms += static_cast<double>(terms_[i]);
    }
    all.value += carry;
    return all;
  }

  double extent_;
  Doubles total_ = {}, carry_ = {}, magnitudes_ = {}, positive_ = {}, negative_ = {}, err_ = {},
          half_ = {}, peak_ = {};
  Mask terms_ = {};
};

inline namespace LOSSGATE_LANES_NAMESPACE {

LOSSGATE_LANEWISE Lanes made_of_mean_of_all(Lanes mean, double times) {
  mean.err += or_zero(~mean.is_exact_zero(), all_lanes(times * lanes::scope->eta));
  return mean;
}

LOSSGATE_LANEWISE Lanes difference_of_sums(const Lanes& a, const Lanes& b) {
  lanes::require(smaller(a.peak, b.peak) <= lanes::scope->fits);
  return a - b;
}

}  // namespace LOSSGATE_LANES_NAMESPACE

}  // namespace lossgate::reference
