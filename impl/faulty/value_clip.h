// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Clipped value losses: sound, and with one fault each.
std::vector<Implementation> value_clip_implementations();

}  // namespace lossgate::impl
