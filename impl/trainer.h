// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "impl/positions.h"
#include "impl/validate.h"
#include "reference/spec/case.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// What a trainer knows about a whole optimizer step, or about one rank's share of it.
struct Totals {
  std::int64_t tokens = 0;     ///< valid positions
  std::int64_t sequences = 0;  ///< sequences with a valid position
  std::int64_t rows = 0;       ///< all sequences
};

Totals count_totals(const LossSignature& signature, const Case& c);

/// One micro-batch as the loss function sees it: its own rows, plus what the trainer tells.
struct MicroBatch {
  const LossSignature& signature;
  Case& part;  ///< spec, shape and tensors of these rows; layout and upstream as in the case
  const Positions& positions;  ///< of these rows
  Totals totals;               ///< of the whole step
  Totals rank_totals;          ///< of all micro-batches on this rank
  int rank = 0;
  int world = 1;
  int index = 0;  ///< of this micro-batch on its rank
  int count = 1;  ///< micro-batches on this rank

  /// Other data in the same place of the step.
  MicroBatch with(Case& other, const Positions& other_positions) const {
    return {signature, other, other_positions, totals, rank_totals, rank, world, index, count};
  }
};

/// Computes all outputs of one micro-batch. An output may have a wider format than the result will.
/// Throws Refusal for input that it does not compute.
using Step = std::function<LossResult(MicroBatch&)>;

/// How a trainer combines the micro-batches of a step.
struct Trainer {
  enum class AllReduce { sum, mean };
  AllReduce all_reduce = AllReduce::sum;
  /// After the all-reduce everything is multiplied by this power of the number of ranks: 1 undoes a
  /// mean.
  int world_power = 0;
  /// Divides each rank's accumulated result by its number of micro-batches (a mean of means).
  bool mean_over_micro_batches = false;
  /// Refuses what is invalid, before anything else happens.
  void (*check)(const LossSignature&, const Case&) = &require_valid;
  /// Called once with a copy of the whole step before it is dealt out (advantage pre-scaling). May
  /// store a field in a wider format.
  void (*prepare)(const LossSignature&, Case&) = nullptr;
};

/// Deals the case to micro-batches and ranks, calls `step` on each with its own copy of its rows,
/// accumulates per rank and all-reduces in f32 (f64 where the fields are f64). 16-bit gradients are
/// rounded to their format once, at the end. Outputs whose first axis is `sequences` go back to
/// their places; all others are summed. Outputs of kind `value` are neither averaged nor scaled.
/// Inputs that a step changes are named in `mutated`. A Refusal becomes a refused result.
LossResult train(const LossSignature& signature, const Case& c, const Step& step,
                 const Trainer& trainer = {});

}  // namespace lossgate::impl
