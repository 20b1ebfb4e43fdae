// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/implementation.h"

namespace lossgate::impl {

/// GRPO as the fused kernel computes it, in a loop on the host: forward and backward in one pass.
Implementation grpo_host();

}  // namespace lossgate::impl
