// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>
#include <string_view>

#include "reference/spec/case.h"

namespace lossgate::impl {

/// An option that may be none.
inline std::optional<double> limit_of(const LossSpec& spec, std::string_view option) {
  return spec.is_none(option) ? std::nullopt : std::optional(spec.number(option));
}

/// log |estimate| of a KL estimator at x, in double: what tells whether an output clamp decides.
inline double log_of_estimate(std::string_view kind, double x) {
  if (kind == "k1") return std::log(std::fabs(x));
  if (kind == "k2") return 2.0 * std::log(std::fabs(x)) - std::log(2.0);
  return x > 40.0 ? x : std::log(std::expm1(x) - x);
}

}  // namespace lossgate::impl
