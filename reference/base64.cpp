// SPDX-License-Identifier: Apache-2.0
#include "reference/base64.h"

#include <array>

namespace lossgate::reference {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The six bits of every character, 64 where it has none.
constexpr std::array<std::uint8_t, 256> kBits = [] {
  std::array<std::uint8_t, 256> bits{};
  bits.fill(64);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    bits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return bits;
}();

}  // namespace

std::optional<std::vector<std::uint8_t>> read_base64(std::string_view text, std::int64_t bytes) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(bytes);  // a negative one is larger than any text
  const std::size_t groups = text.size() / 4;
  if (groups != size / 3 + (size % 3 != 0)) return std::nullopt;
  const std::size_t padding = groups * 3 - size;
  for (std::size_t i = 0; i < padding; ++i) {
    if (text[text.size() - 1 - i] != '=') return std::nullopt;
  }
  std::vector<std::uint8_t> read;
  read.reserve(groups * 3);
  for (std::size_t group = 0; group < groups; ++group) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const bool padded = group + 1 == groups && i >= 4 - padding;
      const std::uint8_t bits = padded ? 0 : kBits[static_cast<unsigned char>(text[4 * group + i])];
      if (bits > 63) return std::nullopt;
      word = word << 6 | bits;
    }
    for (int shift = 16; shift >= 0; shift -= 8) {
      read.push_back(static_cast<std::uint8_t>(word >> shift));
    }
  }
  // Bits that stand for nothing are 0: a text has one reading and a reading one text.
  for (std::size_t i = 0; i < padding; ++i) {
    if (read.back() != 0) return std::nullopt;
    read.pop_back();
  }
  return read;
}

}  // namespace lossgate::reference
