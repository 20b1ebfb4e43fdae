// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/faulty/cross_entropy_eager.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// Faults of the output layer and of what goes back through it; those of the cost are the eager
/// cross-entropy's own.
enum class LinearCrossEntropyFault {
  none,
  bias_of_taken_alone,
  chunk_means_added,
  gradient_filtered,
  weight_gradient_in_16_bits,
};

struct EagerLinearCrossEntropyOptions {
  LinearCrossEntropyFault fault = LinearCrossEntropyFault::none;
  CrossEntropyFault cost = CrossEntropyFault::none;
};

/// Cross-entropy from hidden states: the logits of valid positions, the eager cross-entropy on
/// these, and its gradients taken back through the output layer. In f32, in f64 where the fields
/// are f64; weight and bias gradients accumulate in that format.
LossResult eager_linear_cross_entropy(MicroBatch& micro_batch,
                                      const EagerLinearCrossEntropyOptions& options);

}  // namespace lossgate::impl
