// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lossgate {

/// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923): stable across platforms, unlike std::hash.
class Fnv1a {
 public:
  constexpr void add(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace lossgate
