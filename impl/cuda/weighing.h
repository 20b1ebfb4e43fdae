// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/positions_block.h"
#include "impl/token_weight.h"

namespace lossgate::impl {

/// What the terms of a step with these counts weigh.
inline Weighing weighing_of(const LossSpec& spec, const Totals& totals) {
  Weighing weighing;
  weighing.by_sequence = spec.reduction == Reduction::sequence_mean;
  weighing.sequences = totals.sequences;
  // Of a sequence that counts; those without a valid position weigh nothing anyway. A count of 0
  // beside one that does gives no number.
  weighing.constant = token_weight<float>(spec, totals, 1);
  return weighing;
}

}  // namespace lossgate::impl
