// SPDX-License-Identifier: Apache-2.0
#include "reference/fp_environment.h"

#include <cfenv>
#include <cstdint>
#include <limits>

#include "reference/real.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lossgate::reference {
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

// The control words are read directly: <cfenv> knows the rounding mode and nothing else.
void read_control_words(FpEnvironment& environment) {
#if defined(__SSE2__)
  const unsigned mxcsr = _mm_getcsr();
  environment.flush_to_zero = (mxcsr & 0x8000U) != 0;
  environment.denormals_are_zero = (mxcsr & 0x0040U) != 0;
  std::uint16_t x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  constexpr int kPrecisions[] = {24, 0, 53, 64};
  environment.x87_precision = kPrecisions[(x87 >> 8) & 3];
#elif defined(__aarch64__)
  std::uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  environment.flush_to_zero = (fpcr >> 24 & 1) != 0;
  environment.denormals_are_zero = environment.flush_to_zero;
#else
  (void)environment;
#endif
}

}  // namespace

FpEnvironment fp_environment() {
  FpEnvironment environment;
  environment.rounding = rounding_name(std::fegetround());
  environment.real_digits = std::numeric_limits<Real>::digits;
  read_control_words(environment);
  return environment;
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
