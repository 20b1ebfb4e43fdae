// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/control_words.h"

#include <cfenv>
#include <cstdint>

namespace lossgate {

ControlWords control_words() {
  ControlWords words;
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
  words.flush_to_zero = words.denormals_are_zero = (fpcr >> 24 & 1) != 0;  // one bit is both
  words.traps = static_cast<int>(fpcr >> 8) & FE_ALL_EXCEPT;
#endif
#endif
  return words;
}

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

}  // namespace lossgate
