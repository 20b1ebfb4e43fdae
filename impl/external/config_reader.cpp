// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config_reader.h"

#include <regex>
#include <sstream>

namespace lossgate::impl {
namespace {

/// What may be wrong with a line that is no TOML: `dual_clip = none`, `[f32]`, or True.
std::string hint_at(std::string_view text, toml::source_index line) {
  std::istringstream lines{std::string(text)};
  std::string at;
  for (toml::source_index i = 0; i < line; ++i) std::getline(lines, at);
  static const std::regex kAside(R"("[^"]*"|'[^']*'|#.*)");
  static const std::regex kBareWord(
      R"([=,\[]\s*(?!true\b|false\b|inf\b|nan\b)([A-Za-z_]\w*)\b(?!\s*[=.]))");
  at = std::regex_replace(at, kAside, "0");
  at.erase(0, at.find('='));
  std::smatch found;
  if (!std::regex_search(at, found, kBareWord)) return "";
  const std::string word = found[1];
  if (word == "True" || word == "False") return "; it is true or false here";
  return "; a word stands in quotes: \"" + (word == "None" ? "none" : word) + '"';
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    throw ConfigError(file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
                      ": " + std::string(error.description()) + hint_at(text, at.line));
  }
}

}  // namespace lossgate::impl
