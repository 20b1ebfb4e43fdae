// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/fp_settings.h"

#include <utility>

namespace lossgate::impl {
namespace {

std::string state(bool on) { return on ? " is on" : " is off"; }

constexpr std::pair<int, const char*> kExceptions[] = {{FE_INVALID, "invalid operations"},
                                                       {FE_DIVBYZERO, "division by zero"},
                                                       {FE_OVERFLOW, "overflow"},
                                                       {FE_UNDERFLOW, "underflow"},
                                                       {FE_INEXACT, "rounding"}};

}  // namespace

FpSettings::FpSettings() : saved_(), words_(control_words()) { std::fegetenv(&saved_); }

std::vector<FpSettings::Change> FpSettings::restore() const {
  const ControlWords now = control_words();
  std::fesetenv(&saved_);
  std::vector<Change> changes;
  if (now.rounding != words_.rounding) {
    changes.push_back({"the rounding mode is " + rounding_name(now.rounding)});
  } else if (now.x87_rounding != words_.x87_rounding) {
    changes.push_back({"the rounding mode of x87 is " + rounding_name(now.x87_rounding)});
  }
  if (now.flush_to_zero != words_.flush_to_zero) {
    changes.push_back({"flush to zero" + state(now.flush_to_zero), true});
  }
#if !defined(__aarch64__)  // where one bit is both
  if (now.denormals_are_zero != words_.denormals_are_zero) {
    changes.push_back({"denormals-are-zero" + state(now.denormals_are_zero), true});
  }
#endif
  if (now.x87_precision != words_.x87_precision) {
    changes.push_back({"the precision of x87 is " + std::to_string(now.x87_precision) + " bits"});
  }
  for (const auto& [exception, name] : kExceptions) {
    const bool traps = (now.traps & exception) != 0;
    if (traps == ((words_.traps & exception) != 0)) continue;
    changes.push_back({"trapping of " + std::string(name) + state(traps)});
  }
  return changes;
}

}  // namespace lossgate::impl
