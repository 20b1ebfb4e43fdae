// SPDX-License-Identifier: Apache-2.0
#include "impl/external/last_words.h"

#include <gtest/gtest.h>

namespace lossgate::impl {
namespace {

constexpr const char* kDied =
    "warming up\n"
    "Fatal Python error: Segmentation fault\n"
    "\n"
    "Thread 0x00007f8a11200640 (most recent call first):\n"
    "  File \"/home/us/loader.py\", line 5 in waits\n"
    "\n"
    "Current thread 0x00007f8a3b7ff000 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
    "  File \"/home/us/losses.py\", line 80 in segfaults\n"
    "  File \"<lossgate>/worker/inputs.py\", line 120 in call\n"
    "  File \"<string>\", line 66 in <module>\n"
    "\n"
    "Extension modules: torch._C (total: 1)\n";

TEST(LastWords, AreTheLastLineAndTheOnesBeforeIt) {
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("\n \n"), "");
  EXPECT_EQ(last_words("why\n\n"), "why");
  EXPECT_EQ(last_words("first\nsecond\nwhy"), "why; before that: first | second");
  std::string many;
  for (int i = 0; i < 50; ++i) many += "line " + std::to_string(i) + "\n";
  const std::string said = last_words(many);
  EXPECT_TRUE(said.starts_with("line 49; before that: line 30 | line 31")) << said;
}

TEST(LastWords, OfATracebackAreTheErrorAndTheFrame) {
  EXPECT_EQ(last_words(kDied),
            "Fatal Python error: Segmentation fault at losses.py:80 in segfaults")
      << "no address, and no folder";
}

TEST(LastWords, NameTheCodeOfWhoeverBroughtTheFunction) {
  EXPECT_EQ(innermost_frame(kDied), "losses.py:80 in segfaults");
  EXPECT_EQ(innermost_frame("(most recent call first):\n"
                            "  File \"/x/site-packages/torch/functional.py\", line 7 in einsum\n"
                            "  File \"<lossgate>/worker/inputs.py\", line 120 in call\n"),
            "functional.py:7 in einsum");
  EXPECT_EQ(innermost_frame("  File \"/home/us/losses.py\", line 80 in segfaults\n"), "");
  EXPECT_EQ(innermost_frame("(most recent call first):\n  File \"unfinished"), "");
}

}  // namespace
}  // namespace lossgate::impl
