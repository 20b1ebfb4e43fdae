// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lossgate {
namespace {

/// A binary floating-point format of 16 bits: `digits` of significand (the implicit one included)
/// and the largest and smallest exponents e of normal numbers 1.xxx * 2^e.
struct Format {
  int digits;
  int max_exponent;
  int min_exponent;
};

Format format_of(Dtype dtype) {
  return dtype == Dtype::f16 ? Format{11, 15, -14} : Format{8, 127, -126};
}

/// 2^exponent, which is a normal number of f64; std::ldexp would be most of the cost of drawing and
/// storing a tensor.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The e of 1.xxx * 2^e of a normal f64 number; below all that matter for a smaller one.
int exponent_of(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

template <class T>
T load(const std::byte* bits) {
  T value;
  std::memcpy(&value, bits, sizeof value);
  return value;
}

double decode_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  double value;
  if (exponent == 0x1f) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = fraction * power_of_two(-24);
  } else {
    value = (fraction | 0x400) * power_of_two(exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

/// The bits of `value` in a 16-bit format, given that it is representable there.
std::uint16_t pack16(Dtype dtype, double value) {
  const Format format = format_of(dtype);
  const int fraction_bits = format.digits - 1;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const std::uint16_t all_ones = static_cast<std::uint16_t>(2 * format.max_exponent + 1);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | (all_ones << fraction_bits) |
                                      (1u << (fraction_bits - 1)));
  }
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | (all_ones << fraction_bits));
  const double magnitude = std::fabs(value);
  const int exponent = std::max(exponent_of(magnitude), format.min_exponent);
  const auto significand = static_cast<int>(magnitude * power_of_two(fraction_bits - exponent));
  // The leading bit, which a subnormal number lacks, carries into the exponent.
  const int bits = ((exponent - format.min_exponent) << fraction_bits) + significand;
  return static_cast<std::uint16_t>(sign | bits);
}

}  // namespace

std::string_view name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "f64";
    case Dtype::f32:
      return "f32";
    case Dtype::f16:
      return "f16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::i64:
      return "i64";
    case Dtype::i32:
      return "i32";
    case Dtype::u8:
      return "u8";
    case Dtype::boolean:
      return "bool";
  }
  return "?";
}

std::optional<Dtype> parse_dtype(std::string_view text) {
  for (Dtype dtype : kAllDtypes) {
    if (name(dtype) == text) return dtype;
  }
  return std::nullopt;
}

double decode_other(Dtype dtype, const std::byte* bits) {
  switch (dtype) {
    case Dtype::f16:
      return decode_f16(load<std::uint16_t>(bits));
    case Dtype::bf16:
      return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(bits)} << 16);
    default:
      return static_cast<double>(decode_integer(dtype, bits));
  }
}

std::int64_t decode_integer(Dtype dtype, const std::byte* bits) {
  switch (dtype) {
    case Dtype::i64:
      return load<std::int64_t>(bits);
    case Dtype::i32:
      return load<std::int32_t>(bits);
    default:
      return load<std::uint8_t>(bits);
  }
}

double round_to(Dtype dtype, double value) {
  if (dtype == Dtype::f64 || !is_float(dtype)) return value;
  if (dtype == Dtype::f32) return static_cast<float>(value);
  if (!std::isfinite(value)) return value;
  const Format format = format_of(dtype);
  const int exponent = std::max(exponent_of(value), format.min_exponent);
  const double unit = power_of_two(exponent - format.digits + 1);
  // At 2^52 and above the numbers of f64 are the integers, so the sum is rounded to one.
  const double magnitude = std::fabs(value) / unit;
  const double rounded = (magnitude + 0x1p52 - 0x1p52) * unit;
  if (rounded > max_finite(dtype)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return std::copysign(rounded, value);
}

void encode(Dtype dtype, double value, std::byte* bits) {
  const auto store = [bits](auto element) { std::memcpy(bits, &element, sizeof element); };
  switch (dtype) {
    case Dtype::f64:
      return store(value);
    case Dtype::f32:
      return store(static_cast<float>(value));
    case Dtype::f16:
    case Dtype::bf16:
      return store(pack16(dtype, round_to(dtype, value)));
    case Dtype::i64:
      return store(static_cast<std::int64_t>(value));
    case Dtype::i32:
      return store(static_cast<std::int32_t>(value));
    default:
      return store(static_cast<std::uint8_t>(value));
  }
}

std::uint64_t load_bits(Dtype dtype, const std::byte* bits) {
  std::uint64_t word = 0;
  std::memcpy(&word, bits, size_of(dtype));
  return word;
}

void store_bits(Dtype dtype, std::uint64_t word, std::byte* bits) {
  std::memcpy(bits, &word, size_of(dtype));
}

}  // namespace lossgate
