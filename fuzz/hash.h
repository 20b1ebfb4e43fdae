// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/spec/fnv1a.h"

namespace lossgate::fuzz {

/// The step of SplitMix64's state: 2^64 divided by the golden ratio, odd.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

/// SplitMix64's finaliser: a bijection whose output bits all depend on all input bits.
constexpr std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// The same on every platform.
constexpr std::uint64_t hash_of(std::string_view text) {
  Fnv1a hash;
  for (char c : text) hash.add(static_cast<std::uint8_t>(c));
  return hash.value();
}

}  // namespace lossgate::fuzz
