// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lossgate {

/// The storage types of tensors. The first four are IEEE-754-like binary formats.
enum class Dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32, u8, boolean };

inline constexpr Dtype kAllDtypes[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16,
                                       Dtype::i64, Dtype::i32, Dtype::u8,  Dtype::boolean};

std::string_view name(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view text);

std::size_t size_of(Dtype dtype);  ///< bytes per element
bool is_float(Dtype dtype);

/// Of a floating-point format: half the distance from 1 to the next number, and the edges of its
/// range. All are exact in double.
double unit_roundoff(Dtype dtype);
double max_finite(Dtype dtype);
double min_normal(Dtype dtype);
double min_subnormal(Dtype dtype);

/// The stored element, exactly. Integers above 2^53 are rounded; read those with decode_integer.
double decode(Dtype dtype, const std::byte* bits);
std::int64_t decode_integer(Dtype dtype, const std::byte* bits);

/// Stores the value rounded once, to nearest, ties to even; overflow becomes infinity. For integer
/// types the value must be integral and in range.
void encode(Dtype dtype, double value, std::byte* bits);

/// The value that encode would store.
double round_to(Dtype dtype, double value);

/// The element's bits in the low end of a word.
std::uint64_t load_bits(Dtype dtype, const std::byte* bits);
void store_bits(Dtype dtype, std::uint64_t word, std::byte* bits);

}  // namespace lossgate
