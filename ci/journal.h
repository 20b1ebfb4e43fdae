// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lossgate::ci {

/// A file to which lines are appended, each with a checksum before it: whoever is killed while
/// writing leaves one damaged line and nothing else.
class Journal {
 public:
  /// Opens the file, or makes one. Throws MachineError.
  explicit Journal(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Writes the line, which has no line end. Where it cannot be written it waits for `flush`.
  void append(std::string line);

  /// Writes what waits; false where something still waits, a full disk say.
  bool flush();

  std::size_t waiting() const { return waiting_.size(); }
  const std::string& trouble() const { return trouble_; }  ///< why something waits

 private:
  bool write(const std::string& line);

  int descriptor_ = -1;
  bool torn_ = false;  ///< the last line has no end
  std::deque<std::string> waiting_;
  std::string trouble_;
};

/// The lines of a journal whose checksum is right, and how many others there are.
struct JournalText {
  std::vector<std::string> lines;
  std::int64_t damaged = 0;
};

JournalText read_journal(std::string_view text);

}  // namespace lossgate::ci
