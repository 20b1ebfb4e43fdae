// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

Implementation grpo_implementation();
Implementation reinforce_implementation();
Implementation dro_implementation();
Implementation cispo_implementation();
Implementation dppo_implementation();
Implementation sapo_implementation();
Implementation vespo_implementation();
Implementation gmpo_implementation();
Implementation kl_penalty_implementation();
Implementation value_clip_implementation();
Implementation dpo_implementation();
Implementation kto_implementation();
Implementation orpo_implementation();
Implementation log_prob_implementation();
Implementation cross_entropy_implementation();
Implementation dft_implementation();
Implementation entropy_bonus_implementation();
Implementation jsd_implementation();
Implementation sparse_jsd_implementation();
Implementation linear_grpo_implementation();
Implementation linear_cross_entropy_implementation();
Implementation linear_jsd_implementation();
Implementation advantage_scaling_implementation();
Implementation group_advantage_implementation();
Implementation gae_implementation();
Implementation whitening_implementation();
Implementation rollout_correction_implementation();

}  // namespace lossgate::impl

/// What the program looks up after opening this library. Sets LibTorch to one thread: work is
/// spread over processes, and a sum has one order.
extern "C" void lossgate_register(std::vector<lossgate::impl::Implementation>* implementations);
