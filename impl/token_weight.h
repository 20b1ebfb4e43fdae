// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "impl/trainer.h"
#include "reference/spec/case.h"

namespace lossgate::impl {

/// The factor of one sequence's terms in the loss (see Reduction), in the format F; 0 for a
/// sequence without a valid position. Products of counts are formed as integers.
template <class F>
F token_weight(const LossSpec& spec, const Totals& totals, std::int64_t row_tokens) {
  if (row_tokens == 0) return F(0);
  switch (spec.reduction) {
    case Reduction::token_mean:
      return F(1) / static_cast<F>(totals.tokens);
    case Reduction::sequence_mean:
      return F(1) / static_cast<F>(totals.sequences * row_tokens);
    case Reduction::seq_mean_token_sum_norm:
      return F(1) / static_cast<F>(totals.sequences) / static_cast<F>(spec.number("max_length"));
    case Reduction::sum_over_items:
      return F(1) / static_cast<F>(spec.number("num_items"));
    default:
      return F(1);
  }
}

}  // namespace lossgate::impl
