// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// SAPO losses: sound, and with one fault each.
std::vector<Implementation> sapo_implementations();

}  // namespace lossgate::impl
