// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Distillation over the vocabulary, from logits and from hidden states: sound in one step, sound
/// from two buffers, and with one fault each.
std::vector<Implementation> jsd_implementations();

}  // namespace lossgate::impl
