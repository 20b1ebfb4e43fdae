// SPDX-License-Identifier: Apache-2.0
#include "ci/progress.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

TEST(Progress, TellsTimeAsClocksDo) {
  EXPECT_EQ(duration_text(5.2), "0:06");
  EXPECT_EQ(duration_text(245), "4:05");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

}  // namespace
}  // namespace lossgate::ci
