// SPDX-License-Identifier: Apache-2.0
#include "reference/fp_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

#include "reference/real.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lossgate::reference {
namespace {

TEST(FpEnvironment, IsFitHere) { EXPECT_EQ(why_unfit(fp_environment()), std::nullopt); }

TEST(FpEnvironment, HasNoReferenceForF64WhereRealIsNoWider) {
  const bool wider = std::numeric_limits<Real>::digits > std::numeric_limits<double>::digits;
  EXPECT_EQ(why_no_f64().has_value(), !wider);
}

TEST(FpEnvironment, NoticesARoundingMode) {
  std::fesetround(FE_UPWARD);
  const FpEnvironment environment = fp_environment();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(environment.rounding, "upward");
  EXPECT_TRUE(why_unfit(environment));
}

TEST(FpEnvironment, HasNoX87WhereNoneIsFound) {
  EXPECT_EQ(FpEnvironment{}.x87_precision, 0);
  EXPECT_EQ(FpEnvironment{}.real_digits, 0);
  FpEnvironment without;
  without.rounding = "to nearest";
  without.real_digits = 113;
  EXPECT_FALSE(why_unfit(without));
}

#if defined(__SSE2__)
TEST(FpEnvironment, NoticesFlushingAndDenormalsAreZero) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8000U);
  const FpEnvironment flushing = fp_environment();
  _mm_setcsr(before | 0x0040U);
  const FpEnvironment reading_as_zero = fp_environment();
  _mm_setcsr(before);
  EXPECT_TRUE(flushing.flush_to_zero);
  EXPECT_TRUE(why_unfit(flushing));
  EXPECT_TRUE(reading_as_zero.denormals_are_zero);
  EXPECT_TRUE(why_unfit(reading_as_zero));
}

TEST(FpEnvironment, NoticesAShortenedX87) {
  std::uint16_t before = 0;
  __asm__ volatile("fnstcw %0" : "=m"(before));
  std::uint16_t shortened = static_cast<std::uint16_t>((before & ~0x0300) | 0x0200);
  __asm__ volatile("fldcw %0" : : "m"(shortened));
  const FpEnvironment environment = fp_environment();
  __asm__ volatile("fldcw %0" : : "m"(before));
  EXPECT_EQ(environment.x87_precision, 53);
  EXPECT_TRUE(why_unfit(environment));
}
#endif

}  // namespace
}  // namespace lossgate::reference
