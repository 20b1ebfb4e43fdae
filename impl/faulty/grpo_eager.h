// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class GrpoFault {
  none,
  unclamped_exp_mask_multiply,
  nan_to_num_gradient,
  mask_multiply_after_nan_to_num,
  clamp_ratio_after_exp,
  clamp_in_caller_only,
  token_clamp_not_sequence,
  output_clamp_only,
  kl_gradient_dropped,
  dead_clamp,
  advantage_bias_at_padding,
  masked_mean_counts_padding,
  divisor_without_floor,
  mean_of_micro_batch_means,
  local_count_as_global,
  policy_undone_but_not_kl,
  dual_clip_of_positive,
  first_padding_trained,
};

struct EagerGrpoOptions {
  GrpoFault fault = GrpoFault::none;
  /// Advantages come scaled by the weight of their tokens (see scale_advantages).
  bool advantages_scaled = false;
};

/// GRPO written as a chain of tensor operations and differentiated automatically, as trainers do:
/// in f32, in f64 where the fields are f64. The sound form selects at every place where a later
/// operation would overflow although the result does not depend on it: masked inputs before the
/// maths, log-ratios behind a clip or a zero advantage before exp, KL inputs behind the output
/// clamp before expm1.
LossResult eager_grpo(MicroBatch& micro_batch, const EagerGrpoOptions& options);

/// The same in f64 whatever the fields are, so that scaled advantages do not underflow.
LossResult eager_grpo_in_f64(MicroBatch& micro_batch, const EagerGrpoOptions& options);

/// The same in f16 where the fields are f16.
LossResult eager_grpo_in_f16(MicroBatch& micro_batch, const EagerGrpoOptions& options);

}  // namespace lossgate::impl
