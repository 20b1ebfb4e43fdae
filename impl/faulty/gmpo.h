// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// GMPO losses: sound, and with one fault each.
std::vector<Implementation> gmpo_implementations();

}  // namespace lossgate::impl
