// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace lossgate::ci {

/// How far something is: one line that is written over on a terminal, a plain line now and then in
/// a log. Writes to standard error.
class LiveLine {
 public:
  explicit LiveLine(std::chrono::seconds in_a_log = std::chrono::seconds(10));
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool due() const;
  void show(const std::string& text);      ///< whether it is due or not
  void clear();                            ///< before something else is written
  bool in_a_log() const { return told_; }  ///< where it has said something

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, dirty_ = false, told_ = false;
  Clock::duration every_;
  Clock::time_point shown_;
};

}  // namespace lossgate::ci
