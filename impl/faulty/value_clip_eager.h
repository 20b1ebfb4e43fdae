// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class ValueClipFault {
  none,
  mean_of_micro_batch_means,
  square_then_half,
  minimum_of_squares,
  clip_gradient_leaks,
  masked_multiply,
  empty_divisor,
  beyond_grid,
  row_count_in_bf16,
  loss_of_full_groups,
  mask_one_token_on,
};

/// The clipped value loss as a chain of tensor operations, differentiated automatically: in f32, in
/// f64 where the fields are f64. The sound form takes the larger distance before it squares, and
/// halves it first, so that nothing overflows but the result.
LossResult eager_value_clip(MicroBatch& micro_batch, ValueClipFault fault);

/// The same in f16 where the fields are f16.
LossResult eager_value_clip_in_f16(MicroBatch& micro_batch, ValueClipFault fault);

}  // namespace lossgate::impl
