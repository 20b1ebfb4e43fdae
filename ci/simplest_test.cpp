// SPDX-License-Identifier: Apache-2.0
#include "ci/simplest.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "corpora/files.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

const impl::Implementation& implementation(const std::string& loss, const std::string& name) {
  return *std::ranges::find_if(impl::catalog(true), [&](const impl::Implementation& one) {
    return one.loss == loss && one.name == name;
  });
}

Case seed(const std::string& name) {
  return corpora::read_case_file(LOSSGATE_SOURCE_DIR "/corpora/seeds/" + name + ".case",
                                 reference::find_signature);
}

std::vector<const properties::Property*> all() {
  std::vector<const properties::Property*> asked;
  for (const properties::Property& property : properties::catalog()) asked.push_back(&property);
  return asked;
}

TEST(Simplest, SaysWhatIsSeenThereAndWhy) {
  const impl::Implementation& faulty = implementation("teacher_payload", "message_padding_read");
  const auto& agreement = *properties::find_property("reference_agreement");
  properties::Finding finding;
  const auto simple = simplest(finding, *reference::find_loss("teacher_payload"), faulty, agreement,
                               seed("teacher_payload/data-behind-a-completion"), all());
  ASSERT_TRUE(simple);
  EXPECT_EQ(finding.diagnosis.cause, "masked data leaks");
  EXPECT_EQ(finding.diagnosis.because, "the answer changes with what the formula does not read");
  const auto seen = agreement.name + "|" + finding.violation.cause + "|";
  EXPECT_TRUE(std::ranges::any_of(simple->shows, [&](const std::string& symptom) {
    return symptom.starts_with(seen);
  })) << testing::PrintToString(simple->shows);
}

TEST(Simplest, LeavesAFindingThatDoesNotShowAgainAsItIs) {
  properties::Finding finding;
  finding.diagnosis.cause = "as it was";
  const impl::Implementation& sound = implementation("grpo", "host");
  EXPECT_FALSE(simplest(finding, *reference::find_loss("grpo"), sound,
                        *properties::find_property("finite_backward"), seed("grpo/ragged-rows"),
                        all()));
  EXPECT_EQ(finding.diagnosis.cause, "as it was");
}

}  // namespace
}  // namespace lossgate::ci
