// SPDX-License-Identifier: Apache-2.0
#include "corpora/element_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace lossgate::corpora {
namespace {

static_assert(std::endian::native == std::endian::little, "cases at rest are little-endian");

/// d.ddd * 10^exponent, without trailing zeros; no digits at all is zero.
struct Decimal {
  std::string digits;
  long long exponent = 0;
};

/// The value of an unsigned decimal text, exactly: "0.0120e3" has digits "12" and exponent 1.
std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal decimal;
  const std::size_t e = std::min(text.find('e'), text.find('E'));
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto read = std::from_chars(power.data(), power.data() + power.size(), decimal.exponent);
    if (read.ec != std::errc{}) return std::nullopt;
    text = text.substr(0, e);
  }
  decimal.exponent -= 1;
  bool point = false;
  for (char c : text) {
    if (c == '.') {
      point = true;
      continue;
    }
    const bool leading_zero = decimal.digits.empty() && c == '0';
    if (!leading_zero) decimal.digits += c;
    if (point && leading_zero) --decimal.exponent;
    if (!point && !leading_zero) ++decimal.exponent;
  }
  while (decimal.digits.ends_with('0')) decimal.digits.pop_back();
  return decimal;
}

template <class T>
Decimal scientific(T value, std::optional<int> precision = std::nullopt) {
  char text[800];  // 767 digits are the most that a double can need
  const auto end =
      precision ? std::to_chars(text, text + sizeof text, value, std::chars_format::scientific,
                                *precision)
                : std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
  return *read_decimal({text, static_cast<std::size_t>(end.ptr - text)});
}

/// Plain notation for what a reader takes in at a glance, powers of ten for the rest.
std::string notation(const Decimal& decimal) {
  const std::string& digits = decimal.digits;
  const auto count = static_cast<long long>(digits.size());
  if (digits.empty()) return "0";
  if (decimal.exponent < -4 || decimal.exponent >= 7) {
    const std::string fraction = count > 1 ? "." + digits.substr(1) : "";
    return digits.substr(0, 1) + fraction + "e" + std::to_string(decimal.exponent);
  }
  if (decimal.exponent < 0) {
    return "0." + std::string(static_cast<std::size_t>(-decimal.exponent - 1), '0') + digits;
  }
  const long long whole = decimal.exponent + 1;
  if (count <= whole) return digits + std::string(static_cast<std::size_t>(whole - count), '0');
  return digits.substr(0, static_cast<std::size_t>(whole)) + "." +
         digits.substr(static_cast<std::size_t>(whole));
}

/// Whether the double lies half-way between two neighbours of the dtype.
bool is_midpoint(Dtype dtype, double value) {
  const int exponent = std::max(std::ilogb(value), std::ilogb(min_normal(dtype)));
  const double units = std::fabs(value) / std::ldexp(2.0 * unit_roundoff(dtype), exponent);
  return units - std::floor(units) == 0.5;
}

/// Of an unsigned text whose nearest double is `nearest`: the value rounded once to the dtype.
/// Rounding the double again could go wrong only where it is a midpoint and the text is not.
double round_once(Dtype dtype, std::string_view text, double nearest) {
  if (nearest == 0.0 || std::isinf(nearest) || !is_midpoint(dtype, nearest)) {
    return round_to(dtype, nearest);
  }
  const std::optional<Decimal> exact = read_decimal(text);
  const Decimal middle = scientific(nearest, 766);
  if (!exact) return round_to(dtype, nearest);
  const auto key = [](const Decimal& d) { return std::pair(d.exponent, d.digits); };
  const double infinity = std::numeric_limits<double>::infinity();
  if (key(*exact) < key(middle)) return round_to(dtype, std::nextafter(nearest, 0.0));
  if (key(*exact) > key(middle)) return round_to(dtype, std::nextafter(nearest, infinity));
  return round_to(dtype, nearest);
}

/// The magnitude that an unsigned decimal stands for in the dtype.
std::optional<double> read_magnitude(Dtype dtype, std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const char* const end = text.data() + text.size();
  double value = 0.0;
  float single = 0.0f;
  const auto read = dtype == Dtype::f32 ? std::from_chars(text.data(), end, single)
                                        : std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  if (dtype == Dtype::f32) value = single;
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) value = round_once(dtype, text, value);
  const bool says_zero =
      text.substr(0, text.find_first_of("eE")).find_first_of("123456789") == std::string_view::npos;
  if (std::isinf(value) || (value == 0.0 && !says_zero)) return std::nullopt;
  return value;
}

/// The fewest digits that read back as the magnitude, of those the nearest ones. At a power of two
/// the neighbour below is nearer than the one above, so the nearest decimal of p digits can miss
/// where the next one up hits.
Decimal shortest_16_bit(Dtype dtype, double magnitude) {
  for (int precision = 1;; ++precision) {
    const Decimal nearest = scientific(magnitude, precision - 1);
    std::string digits = nearest.digits;
    digits.resize(static_cast<std::size_t>(precision), '0');
    const long long last_place = nearest.exponent - precision + 1;
    const int whole = std::stoi(digits);
    for (const int candidate : {whole, whole + 1, whole - 1}) {
      const std::string text = std::to_string(candidate) + "e" + std::to_string(last_place);
      if (read_magnitude(dtype, text) == magnitude) return *read_decimal(text);
    }
  }
}

std::uint64_t canonical_nan(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 0x7ff8000000000000;
    case Dtype::f32:
      return 0x7fc00000;
    case Dtype::f16:
      return 0x7e00;
    default:
      return 0x7fc0;
  }
}

std::string hexadecimal(std::uint64_t word, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; word >>= 4) text[i] = "0123456789abcdef"[word & 15];
  return text;
}

bool parse_nan(Dtype dtype, std::string_view text, std::byte* bits) {
  constexpr std::string_view kOpening = "nan(0x";
  const std::size_t digits = 2 * size_of(dtype);
  if (text == "nan") return store_bits(dtype, canonical_nan(dtype), bits), true;
  if (text.size() != kOpening.size() + digits + 1 || !text.starts_with(kOpening)) return false;
  if (!text.ends_with(')')) return false;
  const char* const first = text.data() + kOpening.size();
  std::uint64_t word = 0;
  const auto read = std::from_chars(first, first + digits, word, 16);
  if (read.ec != std::errc{} || read.ptr != first + digits) return false;
  store_bits(dtype, word, bits);
  return std::isnan(decode(dtype, bits));
}

bool parse_float(Dtype dtype, std::string_view text, std::byte* bits) {
  if (text.starts_with("nan")) return parse_nan(dtype, text, bits);
  const bool negative = text.starts_with('-');
  const std::string_view unsigned_text = text.substr(negative ? 1 : 0);
  const std::optional<double> magnitude = unsigned_text == "inf"
                                              ? std::numeric_limits<double>::infinity()
                                              : read_magnitude(dtype, unsigned_text);
  if (!magnitude) return false;
  encode(dtype, negative ? -*magnitude : *magnitude, bits);
  return true;
}

std::int64_t largest_integer(Dtype dtype) {
  switch (dtype) {
    case Dtype::i64:
      return std::numeric_limits<std::int64_t>::max();
    case Dtype::i32:
      return std::numeric_limits<std::int32_t>::max();
    case Dtype::u8:
      return 255;
    default:
      return 1;
  }
}

std::int64_t smallest_integer(Dtype dtype) {
  return dtype == Dtype::i64 || dtype == Dtype::i32 ? -largest_integer(dtype) - 1 : 0;
}

}  // namespace

void append_element(std::string& text, Dtype dtype, const std::byte* bits) {
  if (!is_float(dtype)) {
    text += std::to_string(decode_integer(dtype, bits));
    return;
  }
  const std::uint64_t word = load_bits(dtype, bits);
  const double value = decode(dtype, bits);
  if (std::isnan(value)) {
    const bool canonical = word == canonical_nan(dtype);
    text += canonical ? "nan" : "nan(0x" + hexadecimal(word, 2 * size_of(dtype)) + ")";
    return;
  }
  if (std::signbit(value)) text += '-';
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) {
    text += "inf";
  } else if (magnitude == 0.0) {
    text += '0';
  } else if (dtype == Dtype::f64) {
    text += notation(scientific(magnitude));
  } else if (dtype == Dtype::f32) {
    text += notation(scientific(static_cast<float>(magnitude)));
  } else {
    text += notation(shortest_16_bit(dtype, magnitude));
  }
}

bool parse_element(Dtype dtype, std::string_view text, std::byte* bits) {
  if (is_float(dtype)) return parse_float(dtype, text, bits);
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value || *value < smallest_integer(dtype) || *value > largest_integer(dtype)) return false;
  store_bits(dtype, static_cast<std::uint64_t>(*value), bits);
  return true;
}

std::string expected_element(Dtype dtype) {
  const std::string type(name(dtype));
  if (is_float(dtype)) {
    return "a number within the range of " + type + ", inf, -inf, nan or nan(0x" +
           std::string(2 * size_of(dtype), '.') + ")";
  }
  return "an integer from " + std::to_string(smallest_integer(dtype)) + " to " +
         std::to_string(largest_integer(dtype)) + " (" + type + ")";
}

std::string number_text(double value) {
  std::string text;
  append_element(text, Dtype::f64, reinterpret_cast<const std::byte*>(&value));
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0.0;
  if (!parse_element(Dtype::f64, text, reinterpret_cast<std::byte*>(&value))) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || text == "-0") return std::nullopt;
  return value;
}

}  // namespace lossgate::corpora
