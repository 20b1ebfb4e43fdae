// SPDX-License-Identifier: Apache-2.0
#include "ci/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lossgate::ci {
namespace {

TEST(Progress, TellsTimeAsClocksDo) {
  EXPECT_EQ(duration_text(5.2), "0:06");
  EXPECT_EQ(duration_text(245), "4:05");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

TEST(Progress, TellsALogOfTheEndWhereItToldOfTheWay) {
  testing::internal::CaptureStderr();
  {
    Progress progress(3, 0, "cases", std::chrono::seconds(0));
    progress.add_cases(1);
    progress.show();
    progress.add_cases(2);
    progress.finish();
    Progress brief(3, 0);
    brief.add_cases(3);
    brief.show();
    brief.finish();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("cases 1/3"), 0U) << log;
  EXPECT_NE(log.find("\ncases 3/3"), std::string::npos) << log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << "a short run says nothing: " << log;
}

TEST(Progress, SaysThatFindingsAreLookedInto) {
  testing::internal::CaptureStderr();
  {
    Progress progress(3, 0, "cases", std::chrono::seconds(0));
    progress.looks_into(1);
    progress.show();
    progress.looks_into(2);
    progress.show();
    progress.looks_into(0);
    progress.show();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cases 0/3, looking into 1 finding\ncases 0/3, looking into 2 findings\ncases 0/3\n");
}

}  // namespace
}  // namespace lossgate::ci
