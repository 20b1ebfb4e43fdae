// SPDX-License-Identifier: Apache-2.0
#include "fuzz/turn.h"

#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "fuzz/hash.h"

namespace lossgate::fuzz {
namespace {

constexpr std::uint64_t kTries = 6;

/// By the places with a low share of both draws, how far they are from a quarter of all: worst are
/// none, and as many as can be.
constexpr auto kUnevenness = [] {
  std::array<std::int32_t, std::size_t{1} << Turn::kPlaces> by_places = {};
  for (unsigned places = 0; places < by_places.size(); ++places) {
    const int off = std::popcount(places) - static_cast<int>(Turn::kPlaces / 4);
    by_places[places] = off * off * off * off;
  }
  return by_places;
}();

}  // namespace

Dealer::Order Dealer::random_order(std::uint64_t seed) {
  Order order;
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  for (std::size_t left = order.size(); left > 1; --left) {
    seed = mix(seed + kGolden);
    std::swap(order[left - 1], order[seed % left]);
  }
  return order;
}

Dealer::Half Dealer::low_half(const Order& order) {
  Half half = 0;
  for (std::size_t place = 0; place < order.size(); ++place) {
    half |= static_cast<Half>((order[place] < order.size() / 2) << place);
  }
  return half;
}

void Dealer::add(Half half) {
  for (unsigned other = 0; other < crowding_.size(); ++other) {
    crowding_[other] += kUnevenness[half & other];
  }
  ++dealt_;
}

std::uint64_t Dealer::next() {
  const std::uint64_t seed = mix(turn_.seed + kGolden * (dealt_ + 1));
  Order best = random_order(seed);
  Half half = low_half(best);
  for (std::uint64_t i = 1; i < kTries && crowding_[half] > 0; ++i) {
    const Order order = random_order(seed + i);
    const Half other = low_half(order);
    if (crowding_[other] < crowding_[half]) half = other, best = order;
  }
  add(half);
  return best[turn_.place];
}

}  // namespace lossgate::fuzz
