// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/sums.h"

namespace lossgate::reference {

/// The sums a[t] = term[t] + q a[t + 1] over what is left of a row, the last one first, 0 <= q
/// <= 1. The same number is the sum of q^k term[t + k], from which an associative scan and a
/// product with a matrix of powers have it: a formula fixes no order of additions (rule B2).
template <class S>
class DecayedSum {
 public:
  DecayedSum(const S& /*decay*/, std::int64_t /*extent*/) {}
  /// The next sum, of which `recurrence` is what the formula makes, charged as the wider way.
  S before(const S& /*term*/, const S& recurrence) { return recurrence; }
};

template <>
class DecayedSum<Tracked> {
 public:
  DecayedSum(const Tracked& decay, std::int64_t extent)
      : q_(std::fabs(decay.v)), annihilates_(q_ == 0.0L) {
    if (annihilates_) return;
    const Arithmetic& arithmetic = *tracking::current;
    log_q_ = static_cast<double>(std::log(q_));
    // A power of 1 rounds nothing, nor does what it multiplies.
    if (is_unit(decay)) return;
    per_power_ = decay.err / q_ + arithmetic.roundoff;
    // Behind this power none is a normal number; none at all where 1 is not, under an eta that is
    // larger than the roundoff. What repeated products lose there adds up as long as it decays, and
    // goes on at what their rounding no longer makes smaller.
    const double normal = arithmetic.eta / arithmetic.roundoff;
    if (log_q_ < 0.0) first_underflow_ = std::max(0.0, std::ceil(std::log(normal) / log_q_));
    lost_of_power_ = std::min(1.0L / (1.0L - q_), static_cast<Real>(extent)) * arithmetic.eta;
  }

  Tracked before(const Tracked& term, const Tracked& recurrence) {
    if (annihilates_) return recurrence;
    add(term);
    if (recurrence.is_exact_zero() || recurrence.v != recurrence.v) return recurrence;
    if (tracking::is_stored_infinity(recurrence)) return recurrence;
    const double err = error(recurrence);
    const double partial =
        tracking::most(static_cast<double>(std::max(positive_, negative_)), err, recurrence.half);
    return wider(recurrence,
                 tracking::finish(recurrence.v, err, std::max(recurrence.peak, partial), 0.0));
  }

 private:
  /// Terms so far, the last of the row first.
  struct Past {
    double log_weight;  ///< of the magnitudes from there on, in units that shrink with q
    double terms;       ///< other than 0, from there on
    Real magnitudes;    ///< of these, undecayed
  };

  void add(const Tracked& term) {
    const Real size = std::fabs(term.v);
    powers_off_ = q_ * ((1.0L + per_power_) * powers_off_ + per_power_ * magnitudes_);
    terms_off_ = q_ * terms_off_ + term.err;
    magnitudes_ = q_ * magnitudes_ + size;
    positive_ = q_ * positive_ + std::max(term.v, 0.0L);
    negative_ = q_ * negative_ + std::max(-term.v, 0.0L);
    const bool zero = term.is_exact_zero();
    const double index = static_cast<double>(past_.size());
    past_.push_back({static_cast<double>(std::log(magnitudes_)) - index * log_q_,
                     terms() + (zero ? 0.0 : 1.0), undecayed() + size});
  }

  double terms() const { return past_.empty() ? 0.0 : past_.back().terms; }
  Real undecayed() const { return past_.empty() ? 0.0L : past_.back().magnitudes; }

  /// How many of the terms count: all but the last of the row, whose weight together is below one
  /// roundoff of what is there, or below the smallest number.
  double counted() {
    const double unit = -static_cast<double>(past_.size() - 1) * log_q_;
    const double least = std::max(std::log(tracking::current->roundoff) + past_.back().log_weight,
                                  std::log(tracking::current->eta) + unit);
    while (negligible_ < past_.size() && past_[negligible_].log_weight <= least) ++negligible_;
    return terms() - (negligible_ > 0 ? past_[negligible_ - 1].terms : 0.0);
  }

  /// What powers that are no normal numbers have lost, of the terms that they multiply.
  Real underflow() const {
    const double reached = static_cast<double>(past_.size()) - 1.0 - first_underflow_;
    return reached < 0.0 ? 0.0L
                         : lost_of_power_ * past_[static_cast<std::size_t>(reached)].magnitudes;
  }

  double error(const Tracked& a) {
    const Arithmetic& arithmetic = *tracking::current;
    const double count = counted();
    const bool whole = count == terms();
    const double additions = whole ? count - 1.0 : count;
    const Real computed = magnitudes_ + powers_off_ + terms_off_;
    const auto added_by = [&](const SumRule& rule) {
      const double growth = std::min(rule.growth(count + 1.0), additions) + (whole ? 0.0 : 1.0);
      return std::expm1(static_cast<Real>(growth * rule.roundoff)) * computed;
    };
    Real err = terms_off_ + powers_off_ + underflow() + count * arithmetic.eta;
    if (additions > 0.0) {
      err += std::max(added_by(arithmetic.sum), added_by(arithmetic.matmul));
      err += additions * arithmetic.flush + tracking::roundoff(a.v, a.half);
    }
    if (!whole) err += arithmetic.eta;
    return tracking::or_infinity(static_cast<double>(err));
  }

  Real q_;
  bool annihilates_;
  double log_q_ = 0.0, first_underflow_ = tracking::kInfinity;
  Real per_power_ = 0.0L, lost_of_power_ = 0.0L;
  Real powers_off_ = 0.0L, terms_off_ = 0.0L, magnitudes_ = 0.0L, positive_ = 0.0L,
       negative_ = 0.0L;
  std::vector<Past> past_;
  std::size_t negligible_ = 0;
};

}  // namespace lossgate::reference
