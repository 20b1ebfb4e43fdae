// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "ci/errors.h"
#include "ci/history.h"
#include "fuzz/hash.h"

namespace {

/// The text with a right checksum before each line, or no mutation would get past those.
std::string with_checksums(std::string_view text) {
  std::string journal;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end);
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx",
                  static_cast<unsigned long long>(lossgate::fuzz::hash_of(line)));
    journal.append(digits).append(" ").append(line).append("\n");
    text.remove_prefix(end + 1);
  }
  return journal;
}

}  // namespace

/// A journal of a campaign, damaged in any way, is read or is refused in words.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string& journal : {std::string(text), with_checksums(text)}) {
    try {
      lossgate::ci::history_of(journal, "the input");
    } catch (const lossgate::ci::InputError&) {
    }
  }
  return 0;
}
