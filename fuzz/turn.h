// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lossgate::fuzz {

/// A case's place among those that are drawn together, and what they have in common.
struct Turn {
  static constexpr std::size_t kPlaces = 8;
  std::uint64_t seed = 0;
  std::size_t place = 0;
};

/// How the cases of a turn deal out what they draw. For each draw they take one of kPlaces equal
/// shares of the numbers each, in an order of its own (Latin hypercube sampling: McKay, Beckman,
/// Conover, Technometrics 21(2), 1979). So each draw is what it would be alone, and what one case
/// in four draws is drawn in every turn. Of a few random orders that one is taken which splits the
/// halves of those before it most evenly: what is drawn in half of the cases meets what is drawn
/// in half of the cases in every turn (pairwise testing: Kuhn, Wallace, Gallo, IEEE Transactions on
/// Software Engineering 30(6), 2004).
class Dealer {
 public:
  explicit Dealer(Turn turn) : turn_(turn) {}

  /// The share of the case in the next draw. What it is hangs on how many draws were dealt before,
  /// so cases of a turn must ask equally often.
  std::uint64_t next();

 private:
  using Order = std::array<std::uint8_t, Turn::kPlaces>;  ///< the share of each place
  using Half = std::uint8_t;  ///< the places with a low share, a bit each

  static Order random_order(std::uint64_t seed);
  static Half low_half(const Order& order);
  void add(Half half);

  Turn turn_;
  std::uint64_t dealt_ = 0;
  /// Of each half, how unevenly those that were dealt split it, all together.
  std::array<std::int32_t, std::size_t{1} << Turn::kPlaces> crowding_ = {};
};

}  // namespace lossgate::fuzz
