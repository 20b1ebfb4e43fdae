// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace lossgate::ci {

/// What a command does now, on standard error. On a terminal a line that is written over; elsewhere
/// a line now and then, for what takes minutes.
class Ticker {
 public:
  Ticker();
  ~Ticker() { clear(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  void show(const std::string& text);
  void clear();

 private:
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point begun_, last_ = {};
};

}  // namespace lossgate::ci
