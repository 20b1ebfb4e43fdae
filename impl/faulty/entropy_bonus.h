// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Entropy bonuses: sound, and with one fault each.
std::vector<Implementation> entropy_bonus_implementations();

}  // namespace lossgate::impl
