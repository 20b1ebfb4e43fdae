// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/spec/case.h"

/// Values as TOML reads them back, whatever is in them.
namespace lossgate::ci {

/// In quotes.
std::string toml_string(std::string_view text);

/// A number as it is, a word or none in quotes.
std::string toml_value(const OptionValue& value);

/// "{ index = \"field:label as ids\" }": names and texts.
std::string toml_table(const std::vector<std::pair<std::string, std::string>>& pairs);

/// "# ...": in one line, whatever is in it.
std::string toml_comment(std::string_view text);

}  // namespace lossgate::ci
