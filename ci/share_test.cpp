// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/verbs.h"
#include "corpora/given_folder.h"

namespace lossgate::ci {
namespace {

TEST(Share, KeepsTheNumbersOfAFieldApartFromItsNameHoweverLongThatIs) {
  const GivenFolder scratch;
  ShareOptions options;
  options.file = LOSSGATE_SOURCE_DIR "/corpora/seeds/dpo/hinge-corner.case";
  options.out = (scratch / "shared.case").string();
  options.filters.implementations = {"eager"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_share(options), 0);
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed, testing::HasSubstr("\n  ref_rejected_log_prob  f32 -11 -11 -11\n"));
  EXPECT_THAT(printed, testing::HasSubstr("\n  shape                  sequences 3\n"));
}

}  // namespace
}  // namespace lossgate::ci
