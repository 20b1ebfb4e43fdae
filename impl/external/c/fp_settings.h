// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>
#include <string>
#include <vector>

#include "reference/spec/control_words.h"

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
  std::fenv_t saved_;
  ControlWords words_;
};

}  // namespace lossgate::impl
