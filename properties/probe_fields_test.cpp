// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

Case pairs(double smoothing = 0.0) {
  Case c = ordinary_case("dpo");
  c.spec.set("label_smoothing", smoothing);
  return c;
}

void exchange(Case& c, const char* one, const char* other) {
  std::swap(c.batch.at(one), c.batch.at(other));
}

TEST(ProbeFields, NameTheReferencesThatAreExchanged) {
  const auto fake = answering(
      "dpo", [](Case& c) { exchange(c, "ref_chosen_log_prob", "ref_rejected_log_prob"); });
  expect_shown(fake, pairs(), "fields exchanged",
               "the answer is that with ref_chosen_log_prob and ref_rejected_log_prob exchanged");
}

TEST(ProbeFields, NameTheAnswersThatAreExchangedInBothModels) {
  // As the smoothing of labels that stands at the other of the two has it.
  const auto fake = answering("dpo", [](Case& c) {
    exchange(c, "chosen_log_prob", "rejected_log_prob");
    exchange(c, "ref_chosen_log_prob", "ref_rejected_log_prob");
  });
  expect_shown(fake, pairs(0.1), "fields exchanged",
               "the answer is that with chosen_log_prob and rejected_log_prob exchanged, and "
               "ref_chosen_log_prob and ref_rejected_log_prob");
}

TEST(ProbeFields, NameTheFieldThatStandsInThePlaceOfAnother) {
  const auto fake =
      answering("grpo", [](Case& c) { c.batch.at("ref_log_prob") = c.batch.at("old_log_prob"); });
  Case c = ordinary_case("grpo");
  c.spec.set("kl_penalty", 0.5);
  expect_shown(fake, c, "fields exchanged",
               "the answer is that with old_log_prob in the place of ref_log_prob");
}

TEST(ProbeFields, TakeADifferenceThatIsLeftOutForNoPlace) {
  const auto without_reference = answering("dpo", [](Case& c) {
    for (const char* name : {"ref_chosen_log_prob", "ref_rejected_log_prob"}) {
      change_each(c.batch.at(name), [](double) { return 0.0; });
    }
  });
  EXPECT_NE(diagnosed(without_reference, pairs()).cause, "fields exchanged");
}

TEST(ProbeFields, TakeALossOfNothingForNoPlace) {
  // A divergence from itself would be 0, too.
  const auto nothing = answering("jsd", nullptr, [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) change_each(each.tensor, [](double) { return 0.0; });
  });
  EXPECT_NE(diagnosed(nothing, ordinary_case("jsd")).cause, "fields exchanged");
}

}  // namespace
}  // namespace lossgate::properties
