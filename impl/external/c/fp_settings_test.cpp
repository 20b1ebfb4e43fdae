// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/fp_settings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace lossgate::impl {
namespace {

using Texts = std::vector<std::string>;

/// What is said of a change, after which nothing is left of it.
Texts said(const std::function<void()>& change) {
  const FpSettings settings;
  change();
  Texts texts;
  for (const FpSettings::Change& each : settings.restore()) texts.push_back(each.text);
  EXPECT_TRUE(settings.restore().empty());
  return texts;
}

TEST(FpSettings, SayNothingOfWhatIsComputed) {
  EXPECT_EQ(said([] {}), Texts{});
  EXPECT_EQ(said([] { std::feraiseexcept(FE_INEXACT | FE_OVERFLOW); }), Texts{});
  EXPECT_EQ(said([] {
              std::fesetround(FE_DOWNWARD);
              std::fesetround(FE_TONEAREST);
            }),
            Texts{});
}

TEST(FpSettings, RestoreTheRoundingMode) {
  EXPECT_EQ(said([] { std::fesetround(FE_UPWARD); }), Texts{"the rounding mode is upward"});
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(FpSettings, AreThoseThatTheyWereMadeWith) {
  std::fesetround(FE_TOWARDZERO);
  const Texts texts = said([] { std::fesetround(FE_TONEAREST); });
  const int left = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(texts, Texts{"the rounding mode is to nearest"});
  EXPECT_EQ(left, FE_TOWARDZERO);
}

#if defined(__x86_64__)
void set_sse(std::uint32_t bits, std::uint32_t values) {
  std::uint32_t word = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(word));
  word = (word & ~bits) | values;
  __asm__ volatile("ldmxcsr %0" : : "m"(word));
}

void set_x87(unsigned bits, unsigned values) {
  std::uint16_t word = 0;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  word = static_cast<std::uint16_t>((word & ~bits) | values);
  __asm__ volatile("fldcw %0" : : "m"(word));
}

TEST(FpSettings, TellWhatALibraryDoesWhenItIsLoaded) {
  const FpSettings settings;
  set_sse(0x8040, 0x8040);
  std::fesetround(FE_UPWARD);
  const auto changes = settings.restore();
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_FALSE(changes[0].loading);
  EXPECT_EQ(changes[1].text, "flush to zero is on");
  EXPECT_TRUE(changes[1].loading);
  EXPECT_EQ(changes[2].text, "denormals-are-zero is on");
  EXPECT_TRUE(changes[2].loading);
  EXPECT_TRUE(settings.restore().empty());
}

TEST(FpSettings, KnowBothUnitsOfTheProcessor) {
  EXPECT_EQ(said([] { set_sse(0x6000, 0x2000); }), Texts{"the rounding mode is downward"});
  EXPECT_EQ(said([] { set_x87(0x0c00, 0x0400); }), Texts{"the rounding mode of x87 is downward"});
  EXPECT_EQ(said([] { set_x87(0x0300, 0x0200); }), Texts{"the precision of x87 is 53 bits"});
  EXPECT_EQ(said([] { set_sse(0x0200, 0); }), Texts{"trapping of division by zero is on"});
  EXPECT_EQ(said([] { set_x87(0x0001, 0); }), Texts{"trapping of invalid operations is on"});
}
#endif

}  // namespace
}  // namespace lossgate::impl
