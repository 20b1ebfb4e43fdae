// SPDX-License-Identifier: Apache-2.0
#include "corpora/prose.h"

#include "corpora/utf8.h"

namespace lossgate::corpora {
namespace {

constexpr std::size_t kWidth = 100;

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t good = valid_utf8_prefix(text);
    for (char c : text.substr(0, good)) {
      if (c == '\r') continue;
      const auto byte = static_cast<unsigned char>(c);
      result += (byte < 0x20 && c != '\n') || byte == 0x7f ? ' ' : c;
    }
    text.remove_prefix(good);
    if (!text.empty()) {
      result += '?';
      text.remove_prefix(1);
    }
  }
  return result;
}

/// A place to break: one space between two words, so that joining by one space gives it back.
bool breaks_at(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && text[at] == ' ' && text[at - 1] != ' ' &&
         text[at + 1] != ' ';
}

void fold_paragraph(std::string_view text, std::size_t width, std::vector<std::string>& lines) {
  while (text.size() > width) {
    std::size_t at = width;
    while (at > 0 && !breaks_at(text, at)) --at;
    if (at == 0) at = width;
    while (at < text.size() && !breaks_at(text, at)) ++at;
    if (at >= text.size()) break;
    lines.emplace_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  lines.emplace_back(text);
}

}  // namespace

std::string tidy(std::string_view text) {
  std::string result;
  for (char c : printable(text)) {
    if (c == '\n') {
      while (result.ends_with(' ')) result.pop_back();
    }
    result += c;
  }
  const std::size_t first = result.find_first_not_of(" \n");
  if (first == std::string::npos) return "";
  return result.substr(first, result.find_last_not_of(" \n") - first + 1);
}

std::vector<std::string> fold(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    const std::string_view paragraph = text.substr(0, end);
    if (!paragraph.empty()) fold_paragraph(paragraph, width, lines);
    if (end == std::string_view::npos) return lines;
    lines.emplace_back();
    text.remove_prefix(end + 1);
  }
}

std::string unfold(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (line.empty()) {
      text += '\n';
      continue;
    }
    if (!text.empty() && !text.ends_with('\n')) text += ' ';
    text += line;
  }
  return text;
}

void append_prose(std::string& text, std::string_view key, std::string_view value) {
  text.append(key).append(":");
  const bool is_short = key.size() + 2 + value.size() <= kWidth;
  if (is_short && value.find('\n') == std::string_view::npos) {
    text.append(" ").append(value).append("\n");
    return;
  }
  text += '\n';
  for (const std::string& line : fold(value, kWidth - kIndent.size())) {
    if (!line.empty()) text.append(kIndent).append(line);
    text += '\n';
  }
}

}  // namespace lossgate::corpora
