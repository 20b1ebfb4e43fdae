// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/spec/signature.h"

namespace lossgate {

/// Whether some sequence has no valid position, or all of them; `valid` is [sequences, tokens].
inline bool has_empty_sequence(const std::vector<bool>& valid, std::int64_t sequences) {
  if (valid.empty() || sequences <= 0) return false;
  const auto tokens = static_cast<std::ptrdiff_t>(valid.size()) / sequences;
  for (auto row = valid.begin(); row != valid.end(); row += tokens) {
    if (std::find(row, row + tokens, true) == row + tokens) return true;
  }
  return false;
}

/// No log-prob, logit, advantage, value or hidden state of a healthy run is larger.
inline constexpr double kLargestOrdinary = 1e4;

/// Ordinary log-probs end at the 1.0 of trainers that mark an invalid one with it.
constexpr bool is_ordinary(Quantity quantity, double value) {
  const double largest = quantity == Quantity::log_prob ? 1.0 : kLargestOrdinary;
  return value >= -kLargestOrdinary && value <= largest;
}

/// An ordinary number of that quantity: the value itself where it is one.
inline double ordinary(Quantity quantity, double value) {
  if (is_ordinary(quantity, value)) return value;
  if (std::isnan(value)) return 0.0;
  const double size = std::min(std::fabs(value), kLargestOrdinary);
  return quantity == Quantity::log_prob ? -size : std::copysign(size, value);
}

/// Whether a caller who keeps to this contract may leave the number at a masked position.
inline bool keeps_to(Masked masked, Quantity quantity, double value) {
  switch (masked) {
    case Masked::anything:
      return true;
    case Masked::minus_infinity:
      return is_ordinary(quantity, value) || value == -HUGE_VAL;
    case Masked::finite:
      return std::isfinite(value);
    case Masked::ordinary:
      return is_ordinary(quantity, value);
    case Masked::zero:
      return value == 0.0;
  }
  return true;
}

/// The number itself where it keeps to the contract, else one that does.
inline double kept(Masked masked, Quantity quantity, double value) {
  if (keeps_to(masked, quantity, value)) return value;
  const bool numbers = masked == Masked::ordinary || masked == Masked::minus_infinity;
  return numbers ? ordinary(quantity, value) : 0.0;
}

}  // namespace lossgate
