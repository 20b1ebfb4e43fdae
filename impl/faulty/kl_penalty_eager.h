// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class KlFault {
  none,
  k3_output_clamp_only,
  k3_unclamped_mask_multiply,
  straight_through_inf_minus_inf,
  k3_gradient_detached,
  k1_sign_flipped,
  k3_in_storage_format,
};

/// Three implementations of one estimator.
enum class K3Form { expm1_minus_x, exp_minus_x_minus_1, exp_minus_1_minus_x };

struct EagerKlOptions {
  KlFault fault = KlFault::none;
  K3Form form = K3Form::expm1_minus_x;
};

/// KL penalties as a chain of tensor operations, differentiated automatically: in f32, in f64 where
/// the fields are f64. The sound form selects masked inputs before the maths, and leaves out an
/// estimate that the output clamp has decided. A straight-through estimate has its value and its
/// gradient from two sums, so that nothing need cancel.
LossResult eager_kl_penalty(MicroBatch& micro_batch, const EagerKlOptions& options);

}  // namespace lossgate::impl
