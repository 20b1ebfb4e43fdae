// SPDX-License-Identifier: Apache-2.0
#include "ci/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace lossgate::ci {

LiveLine::LiveLine() : terminal_(::isatty(STDERR_FILENO) != 0), shown_(Clock::now()) {}

LiveLine::~LiveLine() { clear(); }

bool LiveLine::due() const {
  using namespace std::chrono_literals;
  return Clock::now() - shown_ >= (terminal_ ? Clock::duration(200ms) : Clock::duration(60s));
}

void LiveLine::show(const std::string& text) {
  shown_ = Clock::now();
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void LiveLine::clear() {
  if (!terminal_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace lossgate::ci
