// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/faulty/grpo_eager.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// Faults of the output layer; those of the objective are the eager GRPO program's own.
enum class LinearGrpoFault {
  none,
  weight_gradient_in_16_bits,
  scores_masked_positions,
  temperature_ignored,
};

struct EagerLinearGrpoOptions {
  LinearGrpoFault fault = LinearGrpoFault::none;
  EagerGrpoOptions objective = {};
  /// Evaluates the objective in f16 where the fields are f16.
  bool objective_in_f16 = false;
};

/// GRPO from hidden states: the log-probs of valid positions, the eager GRPO program on them, and
/// its gradients taken back through log-softmax and the output layer. In f32, in f64 where the
/// fields are f64; weight and bias gradients accumulate in that format.
LossResult eager_linear_grpo(MicroBatch& micro_batch, const EagerLinearGrpoOptions& options);

}  // namespace lossgate::impl
