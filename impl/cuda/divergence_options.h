// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "impl/cuda/divergence_math.h"
#include "reference/spec/case.h"

namespace lossgate::impl {

inline DivergenceOptions<float> read_divergence_options(const LossSpec& spec) {
  const double beta = spec.number("beta");
  const bool mixes = beta > 0.0 && beta < 1.0;
  // One below the range of float is not the end at 0, where another divergence is.
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  const auto narrow = static_cast<float>(beta);
  return {.beta = mixes ? std::max(narrow, kLeast) : narrow,
          .rest = static_cast<float>(1.0 - beta),
          .log_beta = mixes ? static_cast<float>(std::log(beta)) : 0.0f,
          .log_rest = mixes ? static_cast<float>(std::log1p(-beta)) : 0.0f};
}

}  // namespace lossgate::impl
