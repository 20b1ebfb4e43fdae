// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "impl/external/greeting.h"

namespace lossgate::impl {

/// The argument that a subject's message names first, under the loss's name or its own; empty where
/// it names none. So a refusal can be held against the argument at fault (rule C7).
std::string named_argument(std::string_view message, const LossSignature& loss,
                           const Greeting& greeting);

}  // namespace lossgate::impl
