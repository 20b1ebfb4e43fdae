// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "impl/pairwise_sum.h"

namespace lossgate::impl {

/// How a variance is computed.
enum class VarianceFault {
  none,
  of_one,      ///< divides by n - 1 where that is 0
  of_squares,  ///< E[x^2] - E[x]^2
};

template <class F>
struct MeanAndVariance {
  F mean, variance;
};

/// Of the numbers of which there is one at least; the divisor is n - 1 where `unbiased`.
template <class F>
MeanAndVariance<F> mean_and_variance(const std::vector<F>& numbers, bool unbiased,
                                     VarianceFault fault) {
  const auto count = static_cast<F>(numbers.size());
  const F mean = pairwise_sum(numbers.data(), numbers.size()) / count;
  const F divisor = unbiased ? count - F(1) : count;
  std::vector<F> squares;
  const bool raw = fault == VarianceFault::of_squares;
  for (const F x : numbers) squares.push_back(raw ? x * x : (x - mean) * (x - mean));
  const F sum = pairwise_sum(squares.data(), squares.size());
  if (divisor == F(0) && fault != VarianceFault::of_one) return {mean, F(0)};
  if (raw) return {mean, (sum / count - mean * mean) * (count / divisor)};
  return {mean, sum / divisor};
}

/// Mean 0 and deviation 1; of no numbers nothing is asked.
template <class F>
class EagerWhitener {
 public:
  EagerWhitener(const std::vector<F>& numbers, double epsilon,
                VarianceFault fault = VarianceFault::none) {
    if (numbers.empty()) return;
    const auto [mean, variance] = mean_and_variance(numbers, true, fault);
    mean_ = mean;
    deviation_ = std::sqrt(variance + static_cast<F>(epsilon));
  }

  F mean() const { return mean_; }
  F operator()(F x) const { return (x - mean_) / deviation_; }

 private:
  F mean_ = 0, deviation_ = 1;
};

}  // namespace lossgate::impl
