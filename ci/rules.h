// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lossgate::ci {

/// properties/README.md as it was when the command was built.
std::string_view rules_text();

/// The numbers of the rules in a text of paragraphs that begin with `**B4.**`.
std::vector<std::string> rule_numbers(std::string_view text);

/// The rule with that number, up to the next rule or heading.
std::optional<std::string> find_rule(std::string_view text, std::string_view number);

}  // namespace lossgate::ci
