// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace lossgate::ci {

/// How far something is: one line that is written over on a terminal, a plain line a minute in a
/// log. Writes to standard error.
class LiveLine {
 public:
  LiveLine();
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool due() const;
  void show(const std::string& text);  ///< now
  void clear();                        ///< before something else is written

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  Clock::time_point shown_;
};

}  // namespace lossgate::ci
