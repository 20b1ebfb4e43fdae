// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class CrossEntropyFault {
  none,
  difference,  ///< none: the other form
  attached,    ///< none: the maximum that is subtracted has a history
  exp_without_max,
  log_of_probability,
  log_of_probability_plus_epsilon,
  online_max_first_tile,
  probability_in_bf16,
  terms_in_bf16,
  smoothing_at_zero,
  smoothing_over_others,
  smoothing_of_ignored,
  z_loss_without_gradient,
  z_loss_of_ignored,
  gradient_of_ignored,
  ignored_label_as_first_token,
  mask_multiply,
  mean_over_all_positions,
  mean_over_no_token,
  mean_of_micro_batch_means,
  upstream_ignored,
  strides_ignored,
  gradient_over_logits,
  gradient_of_sum,
  labels_in_16_bits,
  labels_shifted_twice,
};

/// Cross-entropy as a chain of tensor operations, differentiated automatically: in f32, in f64
/// where the fields are f64.
LossResult eager_cross_entropy(MicroBatch& micro_batch, CrossEntropyFault fault);

}  // namespace lossgate::impl
