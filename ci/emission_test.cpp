// SPDX-License-Identifier: Apache-2.0
#include "ci/emission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::ci {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// A divergence of two sequences of two tokens in Python, with its terms beside the loss.
struct Failing {
  explicit Failing(std::string output, const char* property = "reference_agreement") {
    brought.loss = *reference::find_loss("jsd");
    brought.subject.name = "distillation";
    brought.subject.entry = "py:losses.py:distillation";
    brought.subject.outputs = {"per_token"};
    brought.greeting.code = "def distillation(student_logits, teacher_logits, label, temperature):";
    brought.greeting.arguments = {{"student_logits", "field:student_logits"},
                                  {"teacher_logits", "field:teacher_logits"},
                                  {"label", "field:label"},
                                  {"temperature", "option:temperature"}};
    emission.brought = &brought;
    emission.property = properties::find_property(property);
    emission.c = reference::zero_case(brought.loss.signature, 2, 2, 3);
    emission.c.spec.set("temperature", 2.0);
    const bool has_places = output != "loss";
    emission.violation.place = {.output = std::move(output)};
    if (has_places) emission.violation.place.coordinates = {0, 1};
    emission.violation.actual = 0.5;
    emission.violation.expected = 0.25L;
  }

  std::string text() const { return test_text(emission, ""); }

  Brought brought;
  Emission emission;
};

TEST(Emission, DividesWhatItComparesByTheScaleOfTheFunction) {
  const std::string by = " / 4.0  # temperature^2, which the formula leaves to the caller\n";
  Failing terms("per_token");
  terms.brought.subject.scaled_by = "temperature";
  EXPECT_THAT(terms.text(), HasSubstr("actual = result[\"per_token\"][0, 1].detach()" + by));
  EXPECT_THAT(terms.text(), Not(HasSubstr("loss = loss"))) << "nobody looks at it";
  Failing loss("loss");
  loss.brought.subject.scaled_by = "temperature";
  EXPECT_THAT(loss.text(), HasSubstr("loss = loss" + by));
  EXPECT_THAT(loss.text(), HasSubstr("actual = loss.detach()\n"));
  EXPECT_THAT(Failing("per_token").text(),
              HasSubstr("actual = result[\"per_token\"][0, 1].detach()\n"));
}

TEST(Emission, ShowsNoTermsOfMicroBatches) {
  const auto reason = [](const char* output, const char* property) {
    Failing failing(output, property);
    failing.emission.c.split.parts = {{.rank = 0, .sequences = {0}}, {.rank = 0, .sequences = {1}}};
    return cannot_say(failing.emission);
  };
  EXPECT_EQ(reason("per_token", "split_invariance"),
            "puts the losses of micro-batches together, not their per_token");
  EXPECT_EQ(reason("loss", "split_invariance"), "");
  EXPECT_EQ(reason("gradient.student_logits", "split_invariance"), "");
  EXPECT_EQ(reason("per_token", "reference_agreement"), "") << "of the whole batch";
}

TEST(Emission, SaysWhatATrainerDividesByAndWhereItComesFrom) {
  Failing failing("loss", "split_invariance");
  failing.brought.subject.micro_batches = impl::Combination::mean;
  failing.emission.c.split.parts = {
      {.rank = 0, .sequences = {0}}, {.rank = 0, .sequences = {}}, {.rank = 0, .sequences = {1}}};
  EXPECT_THAT(failing.text(), HasSubstr("parts = [[0], [1]]  # micro-batches of one step, 1 of "
                                        "them empty and not called\n"));
  EXPECT_THAT(failing.text(), HasSubstr("loss = sum(losses) / 3  # micro_batches = \"mean\": the "
                                        "trainer divides by their number\n"));
}

TEST(Emission, WantsTheVeryNumberOfACaseThatAPropertyMakes) {
  Failing empty("loss", "empty_is_zero"), finite("loss", "finite_forward");
  for (Failing* failing : {&empty, &finite}) {
    failing->emission.violation.actual = NAN;
    failing->emission.violation.expected = 0.0L;
    EXPECT_EQ(cannot_emit(failing->emission), "");
  }
  EXPECT_THAT(empty.text(), HasSubstr("assert abs(float(actual) - 0.0) <= 0.0,"));
  EXPECT_THAT(finite.text(), HasSubstr("assert torch.isfinite(actual),"));
}

TEST(Emission, ReportsTheOptionsThatTheFunctionIsNotTold) {
  const Failing failing("loss");
  EXPECT_THAT(
      issue_text(failing.emission, ""),
      ContainsRegex("[|] options [|] reduction .*, beta 0\\.5, temperature 2, num_items 8"));
}

TEST(Emission, SaysOfWhichPropertiesATestIsWritten) {
  EXPECT_EQ(cannot_emit(Failing("loss", "determinism").emission),
            "is written for finite_forward, finite_backward, error_on_invalid, empty_is_zero, "
            "zero_advantage_zero_gradient, reference_agreement, split_invariance, "
            "on_policy_identity, bounds_hold, not for determinism");
}

}  // namespace
}  // namespace lossgate::ci
