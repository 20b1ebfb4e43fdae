// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/fp_settings.h"

#include <cstdint>
#include <utility>

namespace lossgate::impl {
namespace {

std::string rounding_name(int mode) {
  switch (mode) {
    case FE_TONEAREST:
      return "to nearest";
    case FE_UPWARD:
      return "upward";
    case FE_DOWNWARD:
      return "downward";
    case FE_TOWARDZERO:
      return "toward zero";
    default:
      return "unknown";
  }
}

std::string state(bool on) { return on ? " is on" : " is off"; }

constexpr std::pair<int, const char*> kExceptions[] = {{FE_INVALID, "invalid operations"},
                                                       {FE_DIVBYZERO, "division by zero"},
                                                       {FE_OVERFLOW, "overflow"},
                                                       {FE_UNDERFLOW, "underflow"},
                                                       {FE_INEXACT, "rounding"}};

}  // namespace

// The control words are read directly: <cfenv> asks x87 alone for the rounding mode, and knows
// nothing of subnormal numbers.
FpSettings::Words FpSettings::read() {
  Words words;
#if defined(__x86_64__)
  std::uint32_t sse = 0;
  std::uint16_t x87 = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(sse));
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  words.rounding = static_cast<int>(sse >> 3) & FE_TOWARDZERO;
  words.x87_rounding = x87 & FE_TOWARDZERO;
  words.traps = ~(static_cast<int>(sse >> 7) & x87) & FE_ALL_EXCEPT;
  words.flush_to_zero = (sse & 0x8000U) != 0;
  words.denormals_are_zero = (sse & 0x0040U) != 0;
  constexpr int kPrecisions[] = {24, 0, 53, 64};
  words.x87_precision = kPrecisions[(x87 >> 8) & 3];
#else
  words.rounding = words.x87_rounding = std::fegetround();
#if defined(__aarch64__)
  std::uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  words.flush_to_zero = (fpcr >> 24 & 1) != 0;  // of operands and of results
  words.traps = static_cast<int>(fpcr >> 8) & FE_ALL_EXCEPT;
#endif
#endif
  return words;
}

FpSettings::FpSettings() : saved_(), words_(read()) { std::fegetenv(&saved_); }

std::vector<FpSettings::Change> FpSettings::restore() const {
  const Words now = read();
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
  if (now.denormals_are_zero != words_.denormals_are_zero) {
    changes.push_back({"denormals-are-zero" + state(now.denormals_are_zero), true});
  }
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
