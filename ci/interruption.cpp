// SPDX-License-Identifier: Apache-2.0
#include "ci/interruption.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "ci/errors.h"

namespace lossgate::ci {

void tell_interruption_at_start() {
  const auto end = [](int) {  // calls nothing but what a signal handler may
    constexpr std::string_view kText =
        "lossgate: interrupted while it was starting: nothing was asked, nothing is written\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(static_cast<int>(Exit::interrupted));
  };
  std::signal(SIGINT, end);
  std::signal(SIGTERM, end);
}

}  // namespace lossgate::ci
