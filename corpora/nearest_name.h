// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lossgate::corpora {

/// The name that was probably meant, or empty.
std::string nearest_name(std::string_view given, const std::vector<std::string>& known);

/// "; did you mean 'grpo'?", or empty; of what papers call a loss that is known under another name
/// "; that is 'jsd' with beta = 0".
std::string meant_text(std::string_view given, const std::vector<std::string>& known);

}  // namespace lossgate::corpora
