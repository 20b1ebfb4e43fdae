// SPDX-License-Identifier: Apache-2.0
#include "report/shell_word.h"

#include <algorithm>

namespace lossgate::report {
namespace {

bool means_itself(char letter) {
  constexpr std::string_view kOthers = "_@%+=:,./-";
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || kOthers.find(letter) != std::string_view::npos;
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, means_itself)) return std::string(text);
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'') word += "'\\'";  // leave the quotes for a quoted quote, and go on
    word += letter;
  }
  return word + "'";
}

std::string first_shell_word(std::string_view line) {
  std::string word;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size() && (quoted || line[i] != ' '); ++i) {
    if (line[i] == '\'') {
      quoted = !quoted;
    } else if (line[i] == '\\' && !quoted && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += line[i];
    }
  }
  return word;
}

}  // namespace lossgate::report
