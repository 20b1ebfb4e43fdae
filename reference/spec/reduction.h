// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace lossgate {

/// How per-token terms x[s, t] of valid positions become one loss. N is the number of valid tokens,
/// n_s that of sequence s, S the number of sequences with n_s > 0; all are counted over the whole
/// batch, never over a micro-batch.
enum class Reduction {
  none,                     ///< the operation has no scalar loss
  sum,                      ///< sum of x
  token_mean,               ///< sum of x / N
  sequence_mean,            ///< sum over s of (sum over t of x) / (S n_s)
  seq_mean_token_sum_norm,  ///< sum of x / (S max_length), max_length being an option
  sum_over_items,           ///< sum of x / num_items, num_items being an option
};

inline constexpr Reduction kAllReductions[] = {Reduction::none,
                                               Reduction::sum,
                                               Reduction::token_mean,
                                               Reduction::sequence_mean,
                                               Reduction::seq_mean_token_sum_norm,
                                               Reduction::sum_over_items};

constexpr std::string_view name(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::sum:
      return "sum";
    case Reduction::token_mean:
      return "token_mean";
    case Reduction::sequence_mean:
      return "sequence_mean";
    case Reduction::seq_mean_token_sum_norm:
      return "seq_mean_token_sum_norm";
    case Reduction::sum_over_items:
      return "sum_over_items";
  }
  return "?";
}

/// Whether S is a divisor, so that it matters which sequences count.
constexpr bool averages_sequences(Reduction reduction) {
  return reduction == Reduction::sequence_mean || reduction == Reduction::seq_mean_token_sum_norm;
}

constexpr std::optional<Reduction> parse_reduction(std::string_view text) {
  for (Reduction reduction : kAllReductions) {
    if (name(reduction) == text) return reduction;
  }
  return std::nullopt;
}

}  // namespace lossgate
