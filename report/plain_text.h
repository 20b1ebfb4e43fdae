// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Texts of users, made fit for each form that shows them. What a record holds is not trusted.
namespace lossgate::report {

/// No text of one field is longer in anything that people read.
inline constexpr std::size_t kLongestText = 2000;

/// Valid UTF-8 in one direction on one line: control characters, marks that turn the direction of
/// writing and what is no character appear by number, as {202e}; white space becomes a space; bytes
/// that are not UTF-8 become U+FFFD. Cut after `most` bytes, with the length that it had.
std::string plain(std::string_view text, std::size_t most = kLongestText);

/// Plain text between tags or in a quoted attribute, of HTML as of XML.
std::string html(std::string_view text, std::size_t most = kLongestText);

/// Plain text in Markdown, with nothing that Markdown, HTML or a forge would read as more than
/// text. What means nothing where it stands, an underscore within a word, stays as it is.
std::string markdown_text(std::string_view text, std::size_t most = kLongestText);

/// "1,627".
std::string grouped(std::int64_t count);

/// "1 case", "1,627 cases".
std::string counted(std::int64_t count, std::string_view noun);

/// 16 hexadecimal digits that stand for a text in an anchor.
std::string anchor(std::string_view text);

}  // namespace lossgate::report
