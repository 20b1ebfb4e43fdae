// SPDX-License-Identifier: Apache-2.0
#include "ci/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace lossgate::ci {

LiveLine::LiveLine(std::chrono::seconds in_a_log)
    : terminal_(::isatty(STDERR_FILENO) != 0),
      every_(terminal_ ? Clock::duration(std::chrono::milliseconds(200)) : in_a_log),
      shown_(Clock::now()) {}

LiveLine::~LiveLine() { clear(); }

bool LiveLine::due() const { return Clock::now() - shown_ >= every_; }

void LiveLine::show(const std::string& text) {
  shown_ = Clock::now();
  dirty_ = terminal_;
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void LiveLine::clear() {
  if (!std::exchange(dirty_, false)) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace lossgate::ci
