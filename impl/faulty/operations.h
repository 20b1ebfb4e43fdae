// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Advantage scaling as an operation: the sound form, and what has gone wrong with it.
std::vector<Implementation> advantage_scaling_implementations();

/// Advantages within groups of answers: the sound form, and groups and deviations that went wrong.
std::vector<Implementation> group_advantage_implementations();

/// Generalised advantage estimation: the sound form, and what masks and whitening have broken.
std::vector<Implementation> gae_implementations();

/// Whitened advantages: the sound form, and what masks and a variance have broken.
std::vector<Implementation> whitening_implementations();

/// Weights of tokens that another engine sampled: the sound form, and what filters and repairs
/// broke.
std::vector<Implementation> rollout_correction_implementations();

/// Prompt de-duplication: the sound form, and the stride that a micro-batch border breaks.
std::vector<Implementation> prompt_dedup_implementations();

/// A teacher's payload: the sound form, and what has been lost on the way from server to trainer.
std::vector<Implementation> teacher_payload_implementations();

}  // namespace lossgate::impl
