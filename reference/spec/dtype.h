// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace lossgate {

/// The storage types of tensors. The first four are IEEE-754-like binary formats.
enum class Dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32, u8, boolean };

inline constexpr Dtype kAllDtypes[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16,
                                       Dtype::i64, Dtype::i32, Dtype::u8,  Dtype::boolean};

std::string_view name(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view text);

// What is asked of every element is defined here: a call would cost more than the answer.

inline constexpr std::uint8_t kSizes[] = {8, 4, 2, 2, 8, 4, 1, 1};

/// Bytes per element.
constexpr std::size_t size_of(Dtype dtype) { return kSizes[static_cast<std::size_t>(dtype)]; }

constexpr bool is_float(Dtype dtype) { return dtype <= Dtype::bf16; }

/// Of a floating-point format: half the distance from 1 to the next number, and the edges of its
/// range. All are exact in double; integers have those of f64, which holds them.
struct FloatRange {
  double unit_roundoff, max_finite, min_normal, min_subnormal;
};

inline constexpr FloatRange kFloatRanges[] = {
    {0x1p-53, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074},
    {0x1p-24, 0x1.fffffep127, 0x1p-126, 0x1p-149},
    {0x1p-11, 0x1.ffcp15, 0x1p-14, 0x1p-24},
    {0x1p-8, 0x1.fep127, 0x1p-126, 0x1p-133},
};

constexpr const FloatRange& float_range(Dtype dtype) {
  return kFloatRanges[is_float(dtype) ? static_cast<std::size_t>(dtype) : 0];
}
constexpr double unit_roundoff(Dtype dtype) { return float_range(dtype).unit_roundoff; }
constexpr double max_finite(Dtype dtype) { return float_range(dtype).max_finite; }
constexpr double min_normal(Dtype dtype) { return float_range(dtype).min_normal; }
constexpr double min_subnormal(Dtype dtype) { return float_range(dtype).min_subnormal; }

std::int64_t decode_integer(Dtype dtype, const std::byte* bits);

/// The same as decode, of what is neither f64 nor f32.
double decode_other(Dtype dtype, const std::byte* bits);

/// The stored element, exactly. Integers above 2^53 are rounded; read those with decode_integer.
inline double decode(Dtype dtype, const std::byte* bits) {
  const auto load = [bits]<class T>(T value) {
    std::memcpy(&value, bits, sizeof value);
    return static_cast<double>(value);
  };
  if (dtype == Dtype::f32) return load(float());
  if (dtype == Dtype::f64) return load(double());
  return decode_other(dtype, bits);
}

/// Stores the value rounded once, to nearest, ties to even; overflow becomes infinity. For integer
/// types the value must be integral and in range.
void encode(Dtype dtype, double value, std::byte* bits);

/// The value that encode would store.
double round_to(Dtype dtype, double value);

/// The element's bits in the low end of a word.
std::uint64_t load_bits(Dtype dtype, const std::byte* bits);
void store_bits(Dtype dtype, std::uint64_t word, std::byte* bits);

}  // namespace lossgate
