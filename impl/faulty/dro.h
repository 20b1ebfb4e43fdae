// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// DRO losses: sound, and with one fault each.
std::vector<Implementation> dro_implementations();

}  // namespace lossgate::impl
