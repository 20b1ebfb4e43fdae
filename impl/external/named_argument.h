// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "impl/external/greeting.h"

namespace lossgate::impl {

/// The arguments that a subject's message names, under the loss's names or its own, in the order in
/// which it does. So a refusal can be held against the argument at fault (rule C7).
std::vector<std::string> named_arguments(std::string_view message, const LossSignature& loss,
                                         const Greeting& greeting);

}  // namespace lossgate::impl
