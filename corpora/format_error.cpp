// SPDX-License-Identifier: Apache-2.0
#include "corpora/format_error.h"

namespace lossgate::corpora {
namespace {

/// No byte of a broken file may break the one line that reports it.
std::string on_one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

std::string sentence(std::string_view file, int line, std::string_view key,
                     std::string_view expected) {
  std::string text(file);
  if (line > 0) text += ':' + std::to_string(line);
  if (!key.empty()) text += ": " + std::string(key);
  return on_one_line(text + ": " + std::string(expected));
}

}  // namespace

FormatError::FormatError(std::string_view file, int line, std::string_view key,
                         std::string_view expected)
    : std::runtime_error(sentence(file, line, key, expected)),
      file_(file),
      line_(line),
      key_(key),
      expected_(expected) {}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result = "'";
  for (char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  if (text.size() > kLongest) result += "...";
  return result + "'";
}

}  // namespace lossgate::corpora
