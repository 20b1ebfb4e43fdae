// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>
#include <string>
#include <vector>

namespace lossgate::impl {

/// How this thread's processor computes, which a call leaves as it was: as it is now, until it is
/// restored. Which exceptions were raised is no setting, and is restored unsaid.
class FpSettings {
 public:
  FpSettings();

  struct Change {
    std::string text;      ///< "the rounding mode is upward"
    bool loading = false;  ///< so does a library once, when it is loaded
  };
  /// What had been changed, and how.
  std::vector<Change> restore() const;

 private:
  struct Words {
    int rounding = 0;                 ///< as std::fegetround has it
    int traps = 0;                    ///< exceptions that end the process, as std::feraiseexcept
    bool flush_to_zero = false;       ///< subnormal results become 0
    bool denormals_are_zero = false;  ///< subnormal operands are read as 0
    int x87_rounding = 0;             ///< of long double, where that is x87's
    int x87_precision = 0;            ///< bits of significand that x87 keeps
  };
  static Words read();

  std::fenv_t saved_;
  Words words_;
};

}  // namespace lossgate::impl
