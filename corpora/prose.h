// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lossgate::corpora {

/// Prose as it is kept: UTF-8, no control characters but line ends, nothing blank at the end of a
/// line or around the whole. What is wrong is mended, since a story must never stop a finding from
/// being written.
std::string tidy(std::string_view text);

/// Before each line of what does not fit beside its key, and before each row of a field.
inline constexpr std::string_view kIndent = "  ";

/// Tidied prose as lines of at most `width` bytes where it has spaces to break at. Each line end of
/// the text becomes one empty line.
std::vector<std::string> fold(std::string_view text, std::size_t width);

/// The inverse of fold: lines one after the other are one paragraph, an empty line is a line end.
std::string unfold(const std::vector<std::string>& lines);

/// Writes tidied prose into the text of a file: beside its key where it is one short line, else
/// folded below.
void append_prose(std::string& text, std::string_view key, std::string_view value);

}  // namespace lossgate::corpora
