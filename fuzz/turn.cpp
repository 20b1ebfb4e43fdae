// SPDX-License-Identifier: Apache-2.0
#include "fuzz/turn.h"

#include <numeric>
#include <utility>

#include "fuzz/hash.h"

namespace lossgate::fuzz {
namespace {

constexpr std::uint64_t kTries = 6;

/// How far the places with a low share of both draws are from a quarter of all: worst are none, and
/// as many as can be.
template <class Order>
int unevenness(const Order& a, const Order& b) {
  constexpr std::size_t kHalf = Turn::kPlaces / 2;
  int both = 0;
  for (std::size_t place = 0; place < Turn::kPlaces; ++place) {
    both += a[place] < kHalf && b[place] < kHalf;
  }
  const int off = both - static_cast<int>(kHalf / 2);
  return off * off * off * off;
}

}  // namespace

Dealer::Order Dealer::random_order(std::uint64_t seed) const {
  Order order;
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  for (std::size_t left = order.size(); left > 1; --left) {
    seed = mix(seed + kGolden);
    std::swap(order[left - 1], order[seed % left]);
  }
  return order;
}

int Dealer::crowding(const Order& order) const {
  int sum = 0;
  for (const Order& other : dealt_) sum += unevenness(order, other);
  return sum;
}

std::uint64_t Dealer::next() {
  const std::uint64_t seed = mix(turn_.seed + kGolden * (dealt_.size() + 1));
  Order best = random_order(seed);
  int least = crowding(best);
  for (std::uint64_t i = 1; i < kTries && least > 0; ++i) {
    const Order order = random_order(seed + i);
    const int crowded = crowding(order);
    if (crowded < least) least = crowded, best = order;
  }
  dealt_.push_back(best);
  return best[turn_.place];
}

}  // namespace lossgate::fuzz
