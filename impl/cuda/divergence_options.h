// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "impl/cuda/divergence_math.h"
#include "reference/spec/case.h"

namespace lossgate::impl {

inline DivergenceOptions<float> read_divergence_options(const LossSpec& spec) {
  const double beta = spec.number("beta");
  const bool mixes = beta > 0.0 && beta < 1.0;
  return {.beta = static_cast<float>(beta),
          .rest = static_cast<float>(1.0 - beta),
          .log_beta = mixes ? static_cast<float>(std::log(beta)) : 0.0f,
          .log_rest = mixes ? static_cast<float>(std::log1p(-beta)) : 0.0f};
}

}  // namespace lossgate::impl
