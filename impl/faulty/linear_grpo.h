// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// GRPO from hidden states: sound, and with one fault each.
std::vector<Implementation> linear_grpo_implementations();

}  // namespace lossgate::impl
