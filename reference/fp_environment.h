// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace lossgate::reference {

/// How this thread's processor rounds right now (rule A1). A library may change it while loading,
/// so it is read, not assumed.
struct FpEnvironment {
  std::string rounding;             ///< "to nearest", "upward", "downward", "toward zero"
  bool flush_to_zero = false;       ///< subnormal results become 0
  bool denormals_are_zero = false;  ///< subnormal operands are read as 0
  int x87_precision = 0;            ///< bits of significand that x87 keeps; 0 where there is none
  int real_digits = 0;              ///< bits of significand of Real
};

FpEnvironment fp_environment();

/// Why no error bound would hold in this environment, if so.
std::optional<std::string> why_unfit(const FpEnvironment& environment);

/// Why f64 results cannot be judged here, if so.
std::optional<std::string> why_no_f64();

}  // namespace lossgate::reference
