// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "impl/external/deadline.h"

namespace lossgate::impl {

/// What is started: words[0] is looked up in PATH unless it has a slash.
struct Command {
  std::vector<std::string> words;
  std::string folder;
  std::vector<std::pair<std::string, std::string>> environment;  ///< besides our own
  std::int64_t megabytes = 0;  ///< of memory that it may have for itself; 0: as much as there is
  bool says_where = false;     ///< told to abort it writes to standard error where it was
};

/// The other side ended, or did not answer in time: what is known of how.
struct ProcessEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct ProcessHung : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A process that answers frames (see PROTOCOL.md). Ended when it goes out of scope, with
/// everything that it has started, in whatever group or session.
class Process {
 public:
  explicit Process(const Command& command);  ///< throws ProcessEnded
  /// Somebody who already listens on two open descriptors, which stay open.
  Process(int requests, int replies);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Sends one frame and waits for its answer, so many seconds of the process's own time. Throws
  /// ProcessEnded, ProcessHung; afterwards the process is gone.
  std::vector<std::byte> ask(std::span<const std::byte> frame, double seconds);

  /// Sends one frame and does not wait. Throws as `ask` does.
  void tell(std::span<const std::byte> frame, double seconds);

  /// The next answer to what was told. Throws as `ask` does.
  std::vector<std::byte> hear(double seconds);

  /// How much can be told while nobody listens, in pages: each frame begins a new one.
  static std::int64_t pages_of(std::size_t bytes) {
    return static_cast<std::int64_t>(bytes / kPage) + 1;
  }
  std::int64_t room() const;

 private:
  static constexpr std::size_t kPage = 4096;  ///< of Linux's pipes

  void send(std::span<const std::byte> frame, const Deadline& until);
  std::vector<std::byte> receive(const Deadline& until);
  void read(std::span<std::byte> bytes, const Deadline& until);
  void wait(int descriptor, short events, const Deadline& until);
  [[noreturn]] void ended();
  [[noreturn]] void hung();
  std::string end(int patience_ms);
  void trim_complaints(std::int64_t most);
  std::string complaints() const;

  std::string mark_;  ///< in the environment of the process and of all that it starts
  pid_t pid_ = -1;
  int requests_ = -1, replies_ = -1;
  int complaints_ = -1;  ///< a file in memory that takes standard error
  bool owned_ = true, says_where_ = false;
};

}  // namespace lossgate::impl
