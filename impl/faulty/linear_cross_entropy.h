// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// The eager program and its faulty variants.
std::vector<Implementation> linear_cross_entropy_implementations();

}  // namespace lossgate::impl
