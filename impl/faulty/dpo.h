// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// DPO losses: sound, and with one fault each.
std::vector<Implementation> dpo_implementations();

}  // namespace lossgate::impl
