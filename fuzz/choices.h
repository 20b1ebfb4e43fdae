// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fuzz/turn.h"

namespace lossgate::fuzz {

/// The only source of randomness: a seeded generator, or the bytes of a fuzzer.
///
/// Neither uses the standard library's distributions or a transcendental function, so the same seed
/// gives the same draws on every platform. No draw ever retries, so bytes cannot make one hang.
/// Every draw has a simplest answer, which is what zero bytes and exhausted bytes give: `integer`
/// its first bound, `one_of` the first item, `weighted` the first item with a weight, `sometimes`
/// false, `either_sign` its size, `real` its first bound, `bell` 0. Callers list the simplest thing
/// first.
class Choices {
 public:
  /// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
  /// 2014).
  explicit Choices(std::uint64_t seed) : root_(seed), state_(seed) {}

  /// The same for one of several cases, which deal out the first two draws of each axis.
  Choices(std::uint64_t seed, Turn turn) : root_(seed), state_(seed), dealer_(Dealer(turn)) {}

  /// The bytes must outlive the choices.
  explicit Choices(std::span<const std::uint8_t> bytes) : rest_(bytes), from_bytes_(true) {}

  /// The draws that follow belong to the named axis. With a seed they depend on seed and axis
  /// alone, so that a new draw on one axis leaves the others as they were, but for what cases of a
  /// turn deal out; bytes are read on in order.
  void enter(std::string_view axis);

  /// Uniform in [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high);

  /// True with the given probability.
  bool sometimes(double probability) { return share(2) >= 1.0 - probability; }

  /// `size` or, as often, -size.
  double either_sign(double size) { return sometimes(0.5) ? -size : size; }

  /// Uniform between `simplest` (included) and `other` (not included), in either order.
  double real(double simplest, double other) { return simplest + (other - simplest) * share(4); }

  /// In [low, high], 0 < low <= high: uniform exponent, then uniform significand.
  double log_uniform(double low, double high);

  /// Nearly normal with mean 0 and deviation 1, within +-3.5: a sum of four uniform numbers.
  double bell();

  /// An index, with probability proportional to its weight; the weights are not all 0.
  std::size_t weighted(std::span<const int> weights);

  template <class T, std::size_t n>
  const T& one_of(const T (&items)[n]) {
    return items[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(n) - 1))];
  }
  template <class T>
  const T& one_of(std::span<const T> items) {
    return items[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(items.size()) - 1))];
  }

 private:
  std::uint64_t next();
  std::uint64_t take(int byte_count);

  /// Uniform in [0, 1): 53 bits from a seed, as many bytes as asked for from bytes.
  double share(int byte_count) {
    if (!from_bytes_) return static_cast<double>(next() >> 11) * 0x1p-53;
    const double unit = byte_count == 2 ? 0x1p-16 : 0x1p-32;
    return static_cast<double>(take(byte_count)) * unit;
  }

  std::uint64_t root_ = 0;
  std::uint64_t state_ = 0;
  std::optional<Dealer> dealer_;
  std::array<std::uint64_t, 2> shares_{};  ///< of the axis's first draws
  std::size_t drawn_ = 2;                  ///< of them
  std::span<const std::uint8_t> rest_;
  bool from_bytes_ = false;
};

}  // namespace lossgate::fuzz
