// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class JsdFault {
  none,
  joined,  ///< none: the mixture by logaddexp
  log_of_mixture_underflow,
  infinite_logits_times_zero,
  masked_multiply,
  local_token_mean,
  mixed_means_averaged,
  batchmean_by_rows,
  num_items_ignored,
  temperature_forgotten_in_gradient,
  weight_gradient_accumulated_in_bf16,
  upstream_in_hidden_gradient_alone,
  logits_in_bf16,
};

struct EagerJsdOptions {
  JsdFault fault = JsdFault::none;
  /// Rows of even and of odd number come from two buffers, each with a loss of its own.
  bool two_buffers = false;
};

/// Distillation over the vocabulary as a chain of tensor operations, differentiated automatically:
/// in f32, in f64 where the fields are f64.
LossResult eager_jsd(MicroBatch& micro_batch, const EagerJsdOptions& options);

/// The same from hidden states; weight gradients accumulate in the compute format.
LossResult eager_linear_jsd(MicroBatch& micro_batch, const EagerJsdOptions& options);

}  // namespace lossgate::impl
