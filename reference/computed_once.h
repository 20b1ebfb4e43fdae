// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "reference/rows.h"

/// Numbers that an implementation computes once and reads in several places. What each place makes
/// of their errors may cancel: together they reach the result through the derivative of the whole
/// (rule B7).
namespace lossgate::reference {

/// The numbers as they came out, whatever their errors are.
inline Row<Tracked> as_computed(Row<Tracked> x) {
  for (Tracked& a : x) {
    if (tracking::magnitude(a.v) < tracking::kInfinity) a.err = 0.0;
  }
  return x;
}

/// What errors of numbers that were computed once do to a result, which adds up `terms` terms.
class ErrorsOfOnce {
 public:
  explicit ErrorsOfOnce(std::int64_t terms) : terms_(static_cast<double>(terms)) {}

  /// One of them, with the result's first derivative by it, and a bound of what second derivatives
  /// there are in its row of the Hessian, added up, wherever their errors may take these numbers.
  void add(const Tracked& x, Real slope, Real curvature) {
    using namespace tracking;
    // Of a zero or an infinity that was stored nothing is unknown.
    if (x.err == 0.0 && x.half == 0.0) return;
    open_ = open_ || x.half > 0.0;
    err_ += or_infinity(magnitude(slope) * x.err +
                        kThreshold / 2 * magnitude(curvature) * x.err * x.err);
    largest_ = std::max(largest_, magnitude(x.v));
  }

  /// `apart`, which charges each place by itself, with less error where `together`, the same of the
  /// numbers as they came out, knows of less. What the errors make of each place is rounded there,
  /// even where nothing is left of it in the whole.
  Tracked narrowed(Tracked apart, const Tracked& together) const {
    const double rounded = kThreshold * roundoff() * apart.err;
    const double err = tracking::or_infinity(together.err + err_ + rounded);
    if (!open_) apart.err = std::min(apart.err, err);
    return apart;
  }

 private:
  /// Of all operations on the way to the result together; there are fewer than sixteen.
  double roundoff() const {
    const Arithmetic& arithmetic = *tracking::current;
    const MathLibrary& math = arithmetic.math;
    const double worst = std::max({1.0, math.exp + math.exp_slope * largest_, math.log1p});
    return 16.0 * worst * arithmetic.roundoff +
           arithmetic.sum.growth(terms_) * arithmetic.sum.roundoff;
  }

  double terms_;
  double err_ = 0.0, largest_ = 0.0;
  bool open_ = false;  ///< a branch is undecided
};

}  // namespace lossgate::reference
