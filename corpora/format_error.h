// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lossgate::corpora {

/// Something in a file (or in a case that is to become one) is not what the format asks for. what()
/// is one line: file, line where there are lines, key, and what was expected.
class FormatError : public std::runtime_error {
 public:
  /// `line` counts from 1; 0 where the place is not a line.
  FormatError(std::string_view file, int line, std::string_view key, std::string_view expected);

  const std::string& file() const { return file_; }
  int line() const { return line_; }
  const std::string& key() const { return key_; }
  const std::string& expected() const { return expected_; }

 private:
  std::string file_;
  int line_;
  std::string key_;
  std::string expected_;
};

/// The text in quotes, shortened and with everything unprintable replaced: fit for one line.
std::string in_quotes(std::string_view text);

/// "a, b, c".
template <class Names>
std::string listed(const Names& names) {
  std::string list;
  for (const auto& name : names) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

}  // namespace lossgate::corpora
