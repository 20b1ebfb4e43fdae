// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// KL penalties from log-probs: sound in three forms of k3, and with one fault each.
std::vector<Implementation> kl_penalty_implementations();

}  // namespace lossgate::impl
