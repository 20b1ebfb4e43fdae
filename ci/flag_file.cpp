// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "ci/args.h"
#include "ci/errors.h"
#include "corpora/files.h"
#include "corpora/utf8.h"

namespace lossgate::ci {
namespace {

constexpr std::uintmax_t kMaxBytes = 1 << 20;  // flags, not data

void append_words(const std::string& file, std::vector<Word>& words) {
  std::istringstream lines(corpora::read_text(file, kMaxBytes));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string origin = file + ":" + std::to_string(++number);
    if (!corpora::is_utf8(line)) throw InputError(origin + ": expected UTF-8 text");
    std::istringstream content(line.substr(0, line.find('#')));
    for (std::string word; content >> word;) {
      if (word.starts_with("@")) {
        throw InputError(origin + ": expected a flag, found '" + word +
                         "'; a flag file names no other");
      }
      words.push_back({word, origin});
    }
  }
}

}  // namespace

std::vector<Word> expanded(const std::vector<std::string>& words) {
  std::vector<Word> result;
  for (const std::string& word : words) {
    if (word.size() > 1 && word[0] == '@') {
      append_words(word.substr(1), result);
    } else {
      result.push_back({word, ""});
    }
  }
  return result;
}

}  // namespace lossgate::ci
