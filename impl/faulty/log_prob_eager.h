// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/trainer.h"

namespace lossgate::impl {

/// The one place in which a variant of the eager program deviates from the sound one.
enum class LogProbFault {
  none,
  online_max_first_tile,
  online_max_first_block,
  entropy_p_log_p,
  label_clamped,
  logsumexp_without_max,
  ignored_label_reads_logit,
  temperature_twice,
  one_block_of_vocab,
  odd_vocab_of_one_tier,
};

/// Log-probs of taken tokens and entropies as a chain of tensor operations, differentiated
/// automatically: in f32, in f64 where the fields are f64.
LossResult eager_log_prob(MicroBatch& micro_batch, LogProbFault fault);

}  // namespace lossgate::impl
