// SPDX-License-Identifier: Apache-2.0
#include "fuzz/choices.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fuzz/hash.h"

namespace lossgate::fuzz {
namespace {

int bytes_for(std::uint64_t largest) {
  if (largest <= 0xff) return 1;
  if (largest <= 0xffff) return 2;
  if (largest <= 0xffffffff) return 4;
  return 8;
}

}  // namespace

void Choices::enter(std::string_view axis) {
  if (from_bytes_) return;
  state_ = mix(mix(root_ + kGolden) ^ hash_of(axis));
  if (!dealer_) return;
  for (std::uint64_t& share : shares_) share = dealer_->next();
  drawn_ = 0;
}

std::uint64_t Choices::next() {
  const std::uint64_t word = mix(state_ += kGolden);
  if (drawn_ == shares_.size()) return word;
  constexpr std::uint64_t kShare = ~std::uint64_t{0} / Turn::kPlaces + 1;
  return shares_[drawn_++] * kShare + word % kShare;
}

std::uint64_t Choices::take(int byte_count) {
  std::uint64_t word = 0;
  const std::size_t count = std::min(rest_.size(), static_cast<std::size_t>(byte_count));
  for (std::size_t i = 0; i < count; ++i) word |= std::uint64_t{rest_[i]} << (8 * i);
  rest_ = rest_.subspan(count);
  return word;
}

std::int64_t Choices::integer(std::int64_t low, std::int64_t high) {
  const std::uint64_t largest = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  std::uint64_t offset;
  if (from_bytes_) {
    offset = largest == 0 ? 0 : take(bytes_for(largest));
    if (largest != UINT64_MAX) offset %= largest + 1;
  } else if (largest == UINT64_MAX) {
    offset = next();
  } else {
    // The high word of a product instead of a remainder; its bias, below range / 2^64, is nothing
    // that a test could see, and unlike rejection it always takes one word.
    offset =
        static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * (largest + 1)) >> 64);
  }
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double Choices::log_uniform(double low, double high) {
  const int exponent = static_cast<int>(integer(std::ilogb(low), std::ilogb(high)));
  const double significand = real(1.0, 2.0);
  const bool normal = exponent >= -1022 && exponent <= 1023;
  const double power =
      normal ? std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52)
             : std::ldexp(1.0, exponent);
  return std::clamp(significand * power, low, high);
}

double Choices::bell() {
  // Four uniform two's complement numbers; the divisor is the deviation of their sum.
  if (from_bytes_) {
    const std::uint64_t word = take(4);
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<std::int8_t>(word >> (8 * i));
    return sum / 147.8;
  }
  const std::uint64_t word = next();
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int16_t>(word >> (16 * i));
  return sum / 37837.23;
}

std::size_t Choices::weighted(std::span<const int> weights) {
  std::int64_t total = 0;
  for (int weight : weights) total += weight;
  std::int64_t ticket = integer(0, std::max<std::int64_t>(total - 1, 0));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    ticket -= weights[i];
    if (ticket < 0) return i;
  }
  return 0;
}

}  // namespace lossgate::fuzz
