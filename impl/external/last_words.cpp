// SPDX-License-Identifier: Apache-2.0
#include "impl/external/last_words.h"

#include <algorithm>
#include <vector>

namespace lossgate::impl {
namespace {

constexpr std::size_t kMostLines = 20;
constexpr std::string_view kTraceback = "(most recent call first):",
                           kError = "Fatal Python error: ", kCurrent = "Current thread ";

/// Those that are not empty.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// A line `  File "/home/us/losses.py", line 80 in f`.
struct Frame {
  std::string_view file, line, function;

  /// Without folders, which are nobody's business.
  std::string text() const {
    std::string name(file.substr(file.rfind('/') + 1));
    return name + ":" + std::string(line) + (function.empty() ? "" : " in ") +
           std::string(function);
  }
  bool of_worker() const { return file.starts_with('<'); }
  bool of_library() const {
    return file.find("/site-packages/") != file.npos || file.find("/lib/python") != file.npos;
  }
};

bool read_frame(std::string_view line, Frame& frame) {
  constexpr std::string_view kBegin = "  File \"", kLine = "\", line ", kIn = " in ";
  if (!line.starts_with(kBegin)) return false;
  line.remove_prefix(kBegin.size());
  const std::size_t at = line.find(kLine);
  if (at == line.npos) return false;
  frame.file = line.substr(0, at);
  line.remove_prefix(at + kLine.size());
  const std::size_t in = std::min(line.find(kIn), line.size());
  frame.line = line.substr(0, in);
  frame.function = line.substr(std::min(in + kIn.size(), line.size()));
  return true;
}

}  // namespace

std::string innermost_frame(std::string_view said) {
  const std::size_t any = said.find(kTraceback);
  if (any == said.npos) return "";
  const std::size_t current = said.find(kCurrent);  // threads that only wait may stand before it
  const std::size_t begin = current == said.npos ? any : current;
  std::string called;
  for (const std::string_view line : lines_of(said.substr(begin))) {
    Frame frame;
    if (!read_frame(line, frame) || frame.of_worker()) continue;
    if (!frame.of_library()) return frame.text();
    if (called.empty()) called = frame.text();
  }
  return called;
}

std::string last_words(std::string_view said) {
  const auto lines = lines_of(said);
  if (lines.empty()) return "";
  const auto error =
      std::ranges::find_if(lines, [](std::string_view line) { return line.starts_with(kError); });
  if (const std::string frame = innermost_frame(said); error != lines.end() && !frame.empty()) {
    return std::string(*error) + " at " + frame;
  }
  std::string text(lines.back()), before;
  for (std::size_t i = lines.size() - std::min(lines.size(), kMostLines); i + 1 < lines.size();
       ++i) {
    before += (before.empty() ? "" : " | ") + std::string(lines[i]);
  }
  return before.empty() ? text : text + "; before that: " + before;
}

}  // namespace lossgate::impl
