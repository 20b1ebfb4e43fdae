// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Distillation on a sparse support: sound, and with one fault each.
std::vector<Implementation> sparse_jsd_implementations();

}  // namespace lossgate::impl
