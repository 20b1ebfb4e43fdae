// SPDX-License-Identifier: Apache-2.0
#include "corpora/element_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace lossgate::corpora {
namespace {

std::string text_of(Dtype dtype, std::uint64_t word) {
  std::byte bits[8];
  store_bits(dtype, word, bits);
  std::string text;
  append_element(text, dtype, bits);
  return text;
}

/// The bits that a text reads as, nothing where it is refused.
std::optional<std::uint64_t> bits_of(Dtype dtype, std::string_view text) {
  std::byte bits[8];
  if (!parse_element(dtype, text, bits)) return std::nullopt;
  return load_bits(dtype, bits);
}

std::ptrdiff_t digits_in(std::string_view text) {
  std::string digits(text.substr(0, text.find('e')));
  std::erase_if(digits, [](char c) { return c < '0' || c > '9'; });
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (digits.ends_with('0')) digits.pop_back();
  return std::ssize(digits);
}

/// Rounds to a 16-bit format by the compiler's own conversion, not by ours.
std::uint64_t compiler_bits(Dtype dtype, double value) {
  if (dtype == Dtype::f16) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  const auto word = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return (word + 0x7fff + ((word >> 16) & 1)) >> 16;
}

class SixteenBits : public ::testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(ElementText, SixteenBits, ::testing::Values(Dtype::f16, Dtype::bf16),
                         [](const auto& at) { return std::string(name(at.param)); });

TEST_P(SixteenBits, EveryPatternReadsBack) {
  for (std::uint64_t word = 0; word < 0x10000; ++word) {
    const std::string text = text_of(GetParam(), word);
    ASSERT_EQ(bits_of(GetParam(), text), word) << text;
  }
}

TEST_P(SixteenBits, NoDecimalWithFewerDigitsReadsBack) {
  const Dtype dtype = GetParam();
  for (std::uint64_t word = 1; word < 0x8000; ++word) {
    std::byte bits[8];
    store_bits(dtype, word, bits);
    const double value = decode(dtype, bits);
    if (!std::isfinite(value)) continue;
    const auto digits = static_cast<int>(digits_in(text_of(dtype, word)));
    if (digits == 1) continue;
    const int last_place = static_cast<int>(std::floor(std::log10(value))) - digits + 2;
    const double below = std::floor(value / std::pow(10.0, last_place));
    for (double shorter : {below - 1, below, below + 1}) {
      char text[40];
      std::snprintf(text, sizeof text, "%.0fe%d", shorter, last_place);
      ASSERT_NE(compiler_bits(dtype, std::strtod(text, nullptr)), word) << text;
    }
  }
}

RC_GTEST_PROP(ElementText, AnyF64ReadsBackFromTheFewestDigits, (std::uint64_t word)) {
  const std::string text = text_of(Dtype::f64, word);
  RC_ASSERT(bits_of(Dtype::f64, text) == word);
  const double value = std::bit_cast<double>(word);
  if (!std::isfinite(value)) return;
  char shorter[64];
  std::snprintf(shorter, sizeof shorter, "%.*e", static_cast<int>(digits_in(text)) - 2, value);
  RC_ASSERT(digits_in(text) < 2 || std::strtod(shorter, nullptr) != value);
}

TEST(ElementText, F32ReadsBackFromTheFewestDigits) {
  for (std::uint64_t word = 0; word < 0x1'0000'0000; word += 7919) {
    const std::string text = text_of(Dtype::f32, word);
    ASSERT_EQ(bits_of(Dtype::f32, text), word) << text;
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(word));
    if (!std::isfinite(value)) continue;
    const auto digits = static_cast<int>(digits_in(text));
    char shorter[64];
    std::snprintf(shorter, sizeof shorter, "%.*e", digits - 2, static_cast<double>(value));
    ASSERT_TRUE(digits < 2 || std::strtof(shorter, nullptr) != value) << text;
  }
}

TEST(ElementText, IsPleasantToRead) {
  const auto f32 = [](float value) {
    return text_of(Dtype::f32, std::bit_cast<std::uint32_t>(value));
  };
  EXPECT_EQ(f32(0.0f), "0");
  EXPECT_EQ(f32(-0.0f), "-0");
  EXPECT_EQ(f32(0.1f), "0.1");
  EXPECT_EQ(f32(-100.0f), "-100");
  EXPECT_EQ(f32(88.75f), "88.75");
  EXPECT_EQ(f32(0.0001f), "0.0001");
  EXPECT_EQ(f32(0.00012345f), "0.00012345");
  EXPECT_EQ(f32(1e-5f), "1e-5");
  EXPECT_EQ(f32(9999999.0f), "9999999");
  EXPECT_EQ(f32(1e7f), "1e7");
  EXPECT_EQ(f32(1.5e30f), "1.5e30");
  EXPECT_EQ(f32(HUGE_VALF), "inf");
  EXPECT_EQ(f32(-HUGE_VALF), "-inf");
  EXPECT_EQ(text_of(Dtype::f32, 0x00000001), "1e-45");
  EXPECT_EQ(text_of(Dtype::f16, 0x7bff), "65500");  // 65504, but no other f16 is as near
  EXPECT_EQ(text_of(Dtype::bf16, 0x7f7f), "3.39e38");
}

TEST(ElementText, NamesEveryNaN) {
  EXPECT_EQ(text_of(Dtype::f64, 0x7ff8000000000000), "nan");
  EXPECT_EQ(text_of(Dtype::f32, 0x7fc00000), "nan");
  EXPECT_EQ(text_of(Dtype::f16, 0x7e00), "nan");
  EXPECT_EQ(text_of(Dtype::bf16, 0x7fc0), "nan");
  EXPECT_EQ(text_of(Dtype::f32, 0xffc00000), "nan(0xffc00000)");
  EXPECT_EQ(text_of(Dtype::f32, 0x7f800001), "nan(0x7f800001)");  // signalling
  EXPECT_EQ(text_of(Dtype::f64, 0x7ff0000000000001), "nan(0x7ff0000000000001)");
  EXPECT_EQ(text_of(Dtype::f16, 0xfe01), "nan(0xfe01)");
  EXPECT_EQ(bits_of(Dtype::f32, "nan(0x7F800001)"), 0x7f800001u);
  EXPECT_EQ(bits_of(Dtype::f16, "nan(0x7f800001)"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f16, "nan(0x7c00)"), std::nullopt);  // infinity
}

/// A double next to the middle of two f16 rounds to that middle, and again to the wrong side.
TEST(ElementText, RoundsOnlyOnce) {
  EXPECT_EQ(bits_of(Dtype::f16, "1.00048828125"), 0x3c00u);  // the middle: to even
  EXPECT_EQ(bits_of(Dtype::f16, "1.000488281250000000000000000000000001"), 0x3c01u);
  EXPECT_EQ(bits_of(Dtype::f16, "1.000488281249999999999999999999999999"), 0x3c00u);
  EXPECT_EQ(bits_of(Dtype::f16, "1.00146484375"), 0x3c02u);
  EXPECT_EQ(bits_of(Dtype::f16, "1.001464843749999999999999999999999999"), 0x3c01u);
  EXPECT_EQ(bits_of(Dtype::f16, "0.01001464843749999999999999999999999999e2"), 0x3c01u);
  EXPECT_EQ(bits_of(Dtype::bf16, "1.00390625"), 0x3f80u);
  EXPECT_EQ(bits_of(Dtype::bf16, "1.00390625000000000000000000000000001"), 0x3f81u);
  EXPECT_EQ(bits_of(Dtype::bf16, "-1.0117187499999999999999999999999999"), 0xbf81u);
  EXPECT_EQ(bits_of(Dtype::f32, "1.000000059604644775390625"), 0x3f800000u);
  EXPECT_EQ(bits_of(Dtype::f32, "1.0000000596046447753906250000001"), 0x3f800001u);
}

TEST(ElementText, RefusesWhatRoundsToInfinityOrToZero) {
  EXPECT_EQ(bits_of(Dtype::f16, "65519.99999999999999999999999999"), 0x7bffu);
  EXPECT_EQ(bits_of(Dtype::f16, "65520"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f16, "2.98023223876953125e-8"), std::nullopt);  // half the smallest
  EXPECT_EQ(bits_of(Dtype::f16, "2.980232238769531250000000000001e-8"), 1u);
  EXPECT_EQ(bits_of(Dtype::bf16, "3.4e38"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f32, "3.5e38"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f64, "2e308"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f64, "1e-400"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f64, "1e99999999999999999999"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::f16, "0e99999999999999999999"), 0u);
  EXPECT_EQ(bits_of(Dtype::f16, "-0.000"), 0x8000u);
}

TEST(ElementText, IntegersAreExactAndInRange) {
  EXPECT_EQ(text_of(Dtype::i64, 0x8000000000000000), "-9223372036854775808");
  EXPECT_EQ(bits_of(Dtype::i64, "-9223372036854775808"), 0x8000000000000000);
  EXPECT_EQ(bits_of(Dtype::i64, "9007199254740993"), 9007199254740993u);
  EXPECT_EQ(bits_of(Dtype::i64, "9223372036854775808"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::i32, "-2147483648"), 0x80000000u);
  EXPECT_EQ(bits_of(Dtype::i32, "2147483648"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::u8, "255"), 255u);
  EXPECT_EQ(bits_of(Dtype::u8, "256"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::u8, "-1"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::boolean, "1"), 1u);
  EXPECT_EQ(bits_of(Dtype::boolean, "2"), std::nullopt);
  EXPECT_EQ(bits_of(Dtype::boolean, "true"), std::nullopt);
}

RC_GTEST_PROP(ElementText, AnyIntegerReadsBack, (std::int64_t number)) {
  const auto word = static_cast<std::uint64_t>(number);
  RC_ASSERT(bits_of(Dtype::i64, text_of(Dtype::i64, word)) == word);
  RC_ASSERT(bits_of(Dtype::i32, text_of(Dtype::i32, word)) == (word & 0xffffffff));
  RC_ASSERT(bits_of(Dtype::u8, text_of(Dtype::u8, word)) == (word & 0xff));
}

}  // namespace
}  // namespace lossgate::corpora
