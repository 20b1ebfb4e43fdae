// SPDX-License-Identifier: Apache-2.0
#include "ci/progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

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

TEST(Progress, CutsNoLineOfAReportInTheSameFile) {
  testing::internal::CaptureStdout();
  const int before = ::dup(STDERR_FILENO);
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  Progress progress(3, 0, "cases", std::chrono::seconds(0));
  // Its beginning is written at once, as in a long report.
  const std::string line(BUFSIZ + 1, '.');
  fmt::print("{}\n", line);
  progress.show();
  fmt::print("the end\n");
  const std::string file = testing::internal::GetCapturedStdout();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  EXPECT_EQ(file, line + "\ncases 0/3\nthe end\n");
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
