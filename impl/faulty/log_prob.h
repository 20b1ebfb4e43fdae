// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Log-probs of taken tokens and entropies: sound, and with one fault each.
std::vector<Implementation> log_prob_implementations();

}  // namespace lossgate::impl
