// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lossgate {

/// How this thread's processor computes, as its control words have it. They are read directly:
/// <cfenv> asks x87 alone for the rounding mode, and knows nothing of subnormal numbers.
struct ControlWords {
  int rounding = 0;                 ///< as std::fegetround has it
  int traps = 0;                    ///< exceptions that end the process, as std::feraiseexcept
  bool flush_to_zero = false;       ///< subnormal results become 0
  bool denormals_are_zero = false;  ///< subnormal operands are read as 0
  int x87_rounding = 0;             ///< of numbers that x87 computes
  int x87_precision = 0;            ///< bits of significand that x87 keeps; 0 where there is none
};

ControlWords control_words();

/// "to nearest", "upward", "downward", "toward zero".
std::string rounding_name(int mode);

}  // namespace lossgate
