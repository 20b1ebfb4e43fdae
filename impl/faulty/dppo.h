// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// DPPO losses: sound, and with one fault each.
std::vector<Implementation> dppo_implementations();

}  // namespace lossgate::impl
