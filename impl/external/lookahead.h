// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "impl/external/process.h"

namespace lossgate::impl {

/// Questions that were sent to a process before anybody waits for their answers, so that both sides
/// work at the same time. Whoever asks one of them gets its answer; nothing else changes.
class Lookahead {
 public:
  /// Forgets what was foreseen and not asked.
  void begin(Process& process, double seconds);

  /// Sends a frame unless the process might not take it before it is listened to: it may be writing
  /// answers, for which nobody waits yet. Once false, it is false until the next beginning.
  bool send(Process& process, std::vector<std::byte> frame, double seconds);

  /// Whether an answer is still to come.
  bool waits() const;

  /// The answer to the frame, sent before or now.
  std::vector<std::byte> ask(Process& process, std::span<const std::byte> frame, double seconds);

  /// The process is gone.
  void clear() { sent_.clear(); }

 private:
  struct Sent {
    std::vector<std::byte> frame;
    std::optional<std::vector<std::byte>> answer;
  };

  /// Answers come in the order of the questions: hears all until this one has its own.
  void hear(Process& process, std::vector<Sent>::iterator until, double seconds);

  std::vector<Sent> sent_;
  std::int64_t room_ = 0;
};

}  // namespace lossgate::impl
