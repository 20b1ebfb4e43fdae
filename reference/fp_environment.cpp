// SPDX-License-Identifier: Apache-2.0
#include "reference/fp_environment.h"

#include <cfenv>
#include <limits>

#include "reference/real.h"
#include "reference/spec/control_words.h"

namespace lossgate::reference {
FpEnvironment fp_environment() {
  const ControlWords words = control_words();
  return {.rounding = rounding_name(std::fegetround()),
          .flush_to_zero = words.flush_to_zero,
          .denormals_are_zero = words.denormals_are_zero,
          .x87_precision = words.x87_precision,
          .real_digits = std::numeric_limits<Real>::digits};
}

std::optional<std::string> why_unfit(const FpEnvironment& environment) {
  if (environment.rounding != "to nearest") {
    return "the rounding mode is " + environment.rounding + ", not to nearest";
  }
  if (environment.flush_to_zero) return "subnormal results are flushed to zero";
  if (environment.denormals_are_zero) return "subnormal operands are read as zero";
  // Real is computed by x87 exactly where it has 64 bits.
  if (environment.real_digits == 64 && environment.x87_precision != 64) {
    return "x87 keeps " + std::to_string(environment.x87_precision) +
           " bits of significand, not 64";
  }
  return std::nullopt;
}

std::optional<std::string> why_no_f64() {
  if (kRealIsWiderThanDouble) return std::nullopt;
  return "reference not wider";
}

}  // namespace lossgate::reference
