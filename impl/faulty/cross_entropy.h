// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Cross-entropies of supervised fine-tuning: sound, and with one fault each.
std::vector<Implementation> cross_entropy_implementations();

}  // namespace lossgate::impl
