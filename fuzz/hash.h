// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lossgate::fuzz {

/// The step of SplitMix64's state: 2^64 divided by the golden ratio, odd.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

/// SplitMix64's finaliser: a bijection whose output bits all depend on all input bits.
constexpr std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923): stable across platforms, unlike std::hash.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace lossgate::fuzz
