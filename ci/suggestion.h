// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lossgate::ci {

/// The name that was probably meant, or empty.
std::string nearest(std::string_view given, const std::vector<std::string>& known);

/// "unknown loss 'grop'; did you mean 'grpo'?", or a list of what is known.
std::string unknown_name(std::string_view kind, std::string_view given,
                         const std::vector<std::string>& known);

}  // namespace lossgate::ci
