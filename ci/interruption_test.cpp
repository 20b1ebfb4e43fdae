// SPDX-License-Identifier: Apache-2.0
#include "ci/interruption.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lossgate::ci {
namespace {

TEST(InterruptionAtStart, IsToldInOneLine) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto interrupted = [&] {
      tell_interruption_at_start();
      std::raise(signal);
    };
    EXPECT_EXIT(interrupted(), testing::ExitedWithCode(130),
                "^lossgate: interrupted while it was starting: nothing was asked");
  }
}

}  // namespace
}  // namespace lossgate::ci
