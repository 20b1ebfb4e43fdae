// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "reference/deviations.h"
#include "reference/sums.h"

/// Numbers less their mean, over their standard deviation: of groups of rewards, of advantages.
namespace lossgate::reference {

/// The mean of `count` numbers and the variance about it, in two passes. The divisor of the second
/// is count - 1 where `unbiased`; one number has no variance.
template <class S>
struct Moments {
  S mean, variance;
};

template <class S, class At>
Moments<S> moments(std::int64_t count, std::int64_t extent, bool unbiased, At&& at) {
  Sum<S> sum(extent), squares(extent);
  for (std::int64_t i = 0; i < count; ++i) sum.add(at(i));
  const S mean = count == 1 ? sum.value() : sum.value() / constant<S>(static_cast<Real>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const S distance = at(i) - mean;
    squares.add(distance * distance);
  }
  const std::int64_t divisor = unbiased ? count - 1 : count;
  if (divisor == 0) return {mean, S(0)};
  return {mean, squares.value() / constant<S>(static_cast<Real>(divisor))};
}

/// Where each of `count` numbers lies, less their mean, in standard deviations: one apart from all
/// others at (n - 1) / sqrt(n). Where there are fewer numbers it is nearer.
inline std::optional<std::pair<double, double>> range_of_standardised(std::int64_t count,
                                                                      bool unbiased) {
  if (count < 2) return std::nullopt;
  const auto n = static_cast<double>(count);
  const double most = unbiased ? (n - 1.0) / std::sqrt(n) : std::sqrt(n - 1.0);
  return std::pair(-most, most);
}

/// (x - mean) / sqrt(variance + guard) of each of `count` numbers, the variance with one less for
/// a divisor.
template <class S>
class Whitener {
 public:
  template <class At>
  Whitener(std::int64_t count, std::int64_t extent, const S& guard, At&& at)
      : alone_(count == 1),
        moments_(moments<S>(std::max<std::int64_t>(count, 1), extent, true,
                            [&](std::int64_t i) { return count > 0 ? at(i) : S(0); })),
        deviation_(root_of_squares(moments_.variance + guard)),
        least_(root_of_squares(guard)) {}

  const S& mean() const { return moments_.mean; }
  /// Of one number also as x r - mean r, r = 1 / deviation. The mean of several is rounded itself.
  S operator()(const S& x) const {
    if (!alone_) return over_at_least(x - mean(), deviation_, least_);
    return of_equal_products(over_at_least(less_itself(x), deviation_, least_), S(x / deviation_));
  }

 private:
  bool alone_;
  Moments<S> moments_;
  S deviation_, least_;
};

}  // namespace lossgate::reference
