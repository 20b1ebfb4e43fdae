// SPDX-License-Identifier: Apache-2.0
#include "ci/live_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace lossgate::ci {
namespace {

/// Of the terminal, as wide as it is now: what is longer goes on below, and is never cleared.
std::size_t columns() {
  winsize size{};
  const bool told = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : 80;
}

}  // namespace

LiveLine::LiveLine(std::chrono::seconds in_a_log)
    : terminal_(::isatty(STDERR_FILENO) != 0),
      every_(terminal_ ? Clock::duration(std::chrono::milliseconds(200)) : in_a_log),
      shown_(Clock::now()) {}

LiveLine::~LiveLine() { clear(); }

bool LiveLine::due() const { return Clock::now() - shown_ >= every_; }

void LiveLine::show(const std::string& text) {
  shown_ = Clock::now();
  dirty_ = terminal_;
  told_ = !terminal_;
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", std::string_view(text).substr(0, columns() - 1));
  } else {
    std::fflush(stdout);  // which may be the same file, and what is said so far ends with a line
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void LiveLine::clear() {
  if (!std::exchange(dirty_, false)) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace lossgate::ci
