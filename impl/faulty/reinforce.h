// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// REINFORCE losses: sound, and with one fault each.
std::vector<Implementation> reinforce_implementations();

}  // namespace lossgate::impl
