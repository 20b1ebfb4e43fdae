// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/dtype.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lossgate {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double decode_word(Dtype dtype, std::uint64_t word) {
  std::byte bits[8] = {};
  store_bits(dtype, word, bits);
  return decode(dtype, bits);
}

std::uint64_t encode_word(Dtype dtype, double value) {
  std::byte bits[8] = {};
  encode(dtype, value, bits);
  return load_bits(dtype, bits);
}

/// Two doubles are the same number, the sign of zero included; any NaN equals any other.
bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

void reads_back_every_pattern(Dtype dtype) {
  for (std::uint64_t word = 0; word < 0x10000; ++word) {
    const double value = decode_word(dtype, word);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(decode_word(dtype, encode_word(dtype, value)))) << word;
    } else {
      ASSERT_EQ(encode_word(dtype, value), word) << value;
    }
  }
}

TEST(Dtype, ReadsBackEveryPatternOfF16) { reads_back_every_pattern(Dtype::f16); }

TEST(Dtype, ReadsBackEveryPatternOfBf16) { reads_back_every_pattern(Dtype::bf16); }

TEST(Dtype, DecodesEveryPatternOfF16AsTheCompilerDoes) {
  for (std::uint32_t word = 0; word < 0x10000; ++word) {
    const auto expected = std::bit_cast<_Float16>(static_cast<std::uint16_t>(word));
    ASSERT_TRUE(same(decode_word(Dtype::f16, word), static_cast<double>(expected))) << word;
  }
}

// Halfway points are where a rounding goes wrong, so each is tried with its two neighbours in f64.
TEST(Dtype, RoundsToNearestEvenBetweenAllNeighboursOfF16) {
  for (std::uint32_t word = 0; word < 0x7bff; ++word) {
    const double low = decode_word(Dtype::f16, word);
    const double high = decode_word(Dtype::f16, word + 1);
    const double middle = (low + high) / 2;
    const double even = word % 2 == 0 ? low : high;
    ASSERT_TRUE(same(round_to(Dtype::f16, middle), even)) << middle;
    ASSERT_TRUE(same(round_to(Dtype::f16, -middle), -even)) << middle;
    ASSERT_TRUE(same(round_to(Dtype::f16, std::nextafter(middle, 0.0)), low)) << middle;
    ASSERT_TRUE(same(round_to(Dtype::f16, std::nextafter(middle, kInfinity)), high)) << middle;
  }
}

TEST(Dtype, RoundsToNearestEvenBetweenAllNeighboursOfBf16) {
  for (std::uint32_t word = 0; word < 0x7f7f; ++word) {
    const double low = decode_word(Dtype::bf16, word);
    const double high = decode_word(Dtype::bf16, word + 1);
    const double middle = (low + high) / 2;
    const double even = word % 2 == 0 ? low : high;
    ASSERT_EQ(round_to(Dtype::bf16, middle), even) << middle;
    ASSERT_EQ(round_to(Dtype::bf16, std::nextafter(middle, 0.0)), low) << middle;
    ASSERT_EQ(round_to(Dtype::bf16, std::nextafter(middle, kInfinity)), high) << middle;
  }
}

// f64 to f16 by way of f32 rounds twice: 1 + 2^-11 is a tie for f16, and what lies 2^-40 above it
// becomes that tie in f32.
TEST(Dtype, RoundsOnceAndNotByWayOfF32) {
  EXPECT_EQ(round_to(Dtype::f16, 1 + 0x1p-11), 1.0);
  EXPECT_EQ(round_to(Dtype::f16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(round_to(Dtype::bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
}

TEST(Dtype, OverflowsFromHalfAStepAboveTheLargestFiniteValue) {
  EXPECT_EQ(max_finite(Dtype::f16), 65504);
  EXPECT_EQ(round_to(Dtype::f16, std::nextafter(65520.0, 0.0)), 65504);
  EXPECT_EQ(round_to(Dtype::f16, 65520), kInfinity);
  EXPECT_EQ(round_to(Dtype::f16, -65520), -kInfinity);
  EXPECT_EQ(max_finite(Dtype::bf16), 0x1.fep127);
  EXPECT_EQ(round_to(Dtype::bf16, 0x1.ffp127), kInfinity);
  EXPECT_EQ(round_to(Dtype::f32, 0x1.ffffffp127), kInfinity);
}

TEST(Dtype, KnowsTheEdgesOfF32AndF64) {
  EXPECT_EQ(max_finite(Dtype::f32), std::numeric_limits<float>::max());
  EXPECT_EQ(min_normal(Dtype::f32), std::numeric_limits<float>::min());
  EXPECT_EQ(min_subnormal(Dtype::f32), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(unit_roundoff(Dtype::f32), 0x1p-24);
  EXPECT_EQ(max_finite(Dtype::f64), std::numeric_limits<double>::max());
  EXPECT_EQ(min_normal(Dtype::f64), std::numeric_limits<double>::min());
  EXPECT_EQ(min_subnormal(Dtype::f64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(unit_roundoff(Dtype::f64), 0x1p-53);
}

TEST(Dtype, KnowsTheEdgesOfTheSixteenBitFormats) {
  EXPECT_EQ(min_normal(Dtype::f16), 0x1p-14);
  EXPECT_EQ(min_subnormal(Dtype::f16), 0x1p-24);
  EXPECT_EQ(unit_roundoff(Dtype::f16), 0x1p-11);
  EXPECT_EQ(min_normal(Dtype::bf16), 0x1p-126);
  EXPECT_EQ(min_subnormal(Dtype::bf16), 0x1p-133);
  EXPECT_EQ(unit_roundoff(Dtype::bf16), 0x1p-8);
}

TEST(Dtype, RoundsSubnormalsToTheirGridAndKeepsTheSignOfZero) {
  EXPECT_EQ(encode_word(Dtype::f16, 0x1p-24), 1u);
  EXPECT_EQ(encode_word(Dtype::f16, 0x1p-25), 0u);  // a tie, and 0 is even
  EXPECT_EQ(encode_word(Dtype::f16, 0x1.8p-24), 2u);
  EXPECT_EQ(encode_word(Dtype::f16, -0x1p-26), 0x8000u);
  EXPECT_EQ(encode_word(Dtype::f16, -0.0), 0x8000u);
  EXPECT_EQ(encode_word(Dtype::bf16, 0x1p-133), 1u);
  EXPECT_EQ(encode_word(Dtype::bf16, -0x1p-1000), 0x8000u);
}

TEST(Dtype, MakesAQuietNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(encode_word(Dtype::f16, nan) & 0x7fff, 0x7e00U);
  EXPECT_EQ(encode_word(Dtype::bf16, nan) & 0x7fff, 0x7fc0U);
}

TEST(Dtype, KeepsEveryStoredBitOfANan) {
  for (const std::uint64_t word : {0x7fc01234u, 0xffc00001u, 0x7f800001u}) {
    std::byte bits[8] = {};
    store_bits(Dtype::f32, word, bits);
    EXPECT_EQ(load_bits(Dtype::f32, bits), word);
    EXPECT_TRUE(std::isnan(decode(Dtype::f32, bits)));
  }
}

TEST(Dtype, ReadsIntegersBeyondTheReachOfF64) {
  std::byte bits[8] = {};
  store_bits(Dtype::i64, 0x7fffffffffffffff, bits);
  EXPECT_EQ(decode_integer(Dtype::i64, bits), std::numeric_limits<std::int64_t>::max());
  store_bits(Dtype::i32, 0xffffff9c, bits);
  EXPECT_EQ(decode_integer(Dtype::i32, bits), -100);
}

TEST(Dtype, HasTheSizeOfWhatTheCompilerStores) {
  EXPECT_EQ(size_of(Dtype::f64), sizeof(double));
  EXPECT_EQ(size_of(Dtype::f32), sizeof(float));
  EXPECT_EQ(size_of(Dtype::f16), sizeof(_Float16));
  EXPECT_EQ(size_of(Dtype::bf16), sizeof(std::uint16_t));
  EXPECT_EQ(size_of(Dtype::i64), sizeof(std::int64_t));
  EXPECT_EQ(size_of(Dtype::i32), sizeof(std::int32_t));
  EXPECT_EQ(size_of(Dtype::u8), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(Dtype::boolean), sizeof(bool));
}

TEST(Dtype, ParsesTheNameOfEachAndNothingElse) {
  for (const Dtype dtype : kAllDtypes) EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  EXPECT_FALSE(parse_dtype("float32"));
  EXPECT_FALSE(parse_dtype(""));
}

RC_GTEST_PROP(DtypeProperty, RoundsToF16AsTheCompilerDoes, (std::uint64_t word)) {
  // Exponents near f16's range only; nearly all f64 patterns would be zero or infinity there.
  const double significand = 1.0 + static_cast<double>(word >> 12) * 0x1p-52;
  const double value = std::ldexp(significand, static_cast<int>(word % 44) - 27);
  RC_ASSERT(same(round_to(Dtype::f16, value), static_cast<double>(static_cast<_Float16>(value))));
}

RC_GTEST_PROP(DtypeProperty, RoundingTwiceChangesNothing, (std::uint64_t word)) {
  const auto value = std::bit_cast<double>(word);
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const double once = round_to(dtype, value);
    RC_ASSERT(same(round_to(dtype, once), once));
    RC_ASSERT(same(decode_word(dtype, encode_word(dtype, value)), once));
  }
}

}  // namespace
}  // namespace lossgate
