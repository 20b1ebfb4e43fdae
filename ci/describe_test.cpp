// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/verbs.h"

namespace lossgate::ci {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string described(const std::string& name) {
  testing::internal::CaptureStdout();
  run_describe(name);
  return testing::internal::GetCapturedStdout();
}

TEST(Describe, SaysWhatFieldsAreMadeOfThatAreNoNumbers) {
  EXPECT_THAT(described("kto"), AllOf(HasSubstr("1 = the answer was wanted (torch.bool)\n"),
                                      HasSubstr("of the answer, current policy (infinity legal)")));
  EXPECT_THAT(described("group_advantage"), HasSubstr("the sequence answers (torch.int64)\n"));
  EXPECT_THAT(described("teacher_payload"),
              AllOf(HasSubstr("(torch.uint8)\n"), HasSubstr("these tokens (torch.int32)\n")));
  EXPECT_THAT(described("cross_entropy"), HasSubstr("(torch.int64 or torch.int32)\n"));
}

TEST(Describe, SaysOfMasksWhatFunctionsAreHanded) {
  EXPECT_THAT(described("grpo"), AllOf(HasSubstr("1 = counts in the loss (torch.bool)\n"),
                                       Not(HasSubstr("torch.uint8"))));
}

TEST(Describe, SaysWhatAnErrorRatioIs) {
  EXPECT_THAT(described("error ratio"), AllOf(HasSubstr("error ratio\n"), HasSubstr("(rule B3)"),
                                              HasSubstr("up to 2 is allowed")));
}

}  // namespace
}  // namespace lossgate::ci
