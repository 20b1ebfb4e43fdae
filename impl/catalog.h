// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// All implementations, sound before faulty, in the order in which they are listed. Opens the
/// LibTorch library where it lies beside the program; see torch_status.
const std::vector<Implementation>& catalog();

/// Empty where the LibTorch implementations are loaded, else why they are not.
std::string_view torch_status();

}  // namespace lossgate::impl
