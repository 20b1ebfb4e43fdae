// SPDX-License-Identifier: Apache-2.0
#include "ci/toml_text.h"

#include <fmt/format.h>

#include <variant>

#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

/// A key without quotes.
bool is_bare(std::string_view name) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos;
}

}  // namespace

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') quoted += '\\';
    const bool control = byte < 0x20 || byte == 0x7f;
    quoted += control ? fmt::format("\\u{:04X}", byte) : std::string(1, letter);
  }
  return quoted + '"';
}

std::string toml_value(const OptionValue& value) {
  const std::string text = report::option_text(value);
  return std::holds_alternative<double>(value) ? text : toml_string(text);
}

std::string toml_table(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text = "{";
  for (const auto& [name, value] : pairs) {
    text += fmt::format("{} {} = {}", text.size() > 1 ? "," : "",
                        is_bare(name) ? name : toml_string(name), toml_string(value));
  }
  return text + " }";
}

std::string toml_comment(std::string_view text) { return "# " + report::plain(text); }

}  // namespace lossgate::ci
