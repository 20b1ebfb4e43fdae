// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class SparseJsdFault {
  none,
  unlisted,  ///< none: the tail is the sum of what is not listed
  sentinel_unmasked,
  mask_multiplied_after_divergence,
  padding_replaced_by_zero_and_counted,
  nan_to_num_at_valid,
  sentinel_compared_in_bf16,
  tail_floored_after_logarithm,
};

/// Distillation from a teacher that is known on a few tokens, as a chain of tensor operations,
/// differentiated automatically: in f32, in f64 where the fields are f64. The tail is
/// log(-expm1(L)), or the logarithm of what all other tokens have together.
LossResult eager_sparse_jsd(MicroBatch& micro_batch, SparseJsdFault fault);

}  // namespace lossgate::impl
