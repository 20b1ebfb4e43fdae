// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// VESPO losses: sound, and with one fault each.
std::vector<Implementation> vespo_implementations();

}  // namespace lossgate::impl
