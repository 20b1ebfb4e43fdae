// SPDX-License-Identifier: Apache-2.0
#include "ci/ticker.h"

#include <fmt/format.h>
#include <unistd.h>

namespace lossgate::ci {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

Ticker::Ticker() : terminal_(isatty(STDERR_FILENO) != 0), begun_(steady_clock::now()) {}

void Ticker::show(const std::string& text) {
  const auto now = steady_clock::now();
  const auto since = duration_cast<seconds>(now - begun_).count();
  if (terminal_ && now - last_ >= milliseconds(200)) {
    fmt::print(stderr, "\r\033[K{}", text);
    shown_ = true;
  } else if (!terminal_ && since > 0 && now - last_ >= seconds(10)) {
    fmt::print(stderr, "{:>5} s  {}\n", since, text);
  } else {
    return;
  }
  last_ = now;
}

void Ticker::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace lossgate::ci
