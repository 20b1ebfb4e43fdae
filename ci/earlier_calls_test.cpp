// SPDX-License-Identifier: Apache-2.0
#include "ci/earlier_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "corpora/files.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

constexpr const char* kCause = "disagrees with the formula";

const reference::Loss& grpo() { return *reference::find_loss("grpo"); }

const impl::Implementation& host() {
  return *std::ranges::find_if(impl::catalog(), [](const impl::Implementation& one) {
    return one.loss == "grpo" && one.name == "host";
  });
}

Case ragged_rows() {
  return corpora::read_case_file(LOSSGATE_SOURCE_DIR "/corpora/seeds/grpo/ragged-rows.case",
                                 reference::find_signature);
}

/// A sound implementation, asked so often before, that adds 1 to its loss where `wrong` says so of
/// the number of calls.
template <class Wrong>
impl::Implementation counting(int before, Wrong wrong) {
  impl::Implementation fake = host();
  fake.evaluate = [wrong, calls = std::make_shared<int>(before)](const LossSignature& signature,
                                                                 const Case& c) {
    LossResult result = host().evaluate(signature, c);
    Tensor& loss = std::ranges::find(result.outputs, "loss", &Output::name)->tensor;
    if (wrong(++*calls)) loss.set(0, loss.at(0) + 1.0);
    return result;
  };
  return fake;
}

template <class Wrong>
std::optional<EarlierCalls> found_of(Wrong of_subject, Wrong of_own) {
  return needs_earlier_calls(
      grpo(), counting(100, of_subject), [&] { return counting(0, of_own); },
      *properties::find_property("reference_agreement"), ragged_rows(), kCause);
}

std::string violated_cause(const impl::Implementation& subject,
                           const properties::Property& property) {
  properties::CaseStudy study(grpo(), ragged_rows());
  properties::Evaluation evaluation(study, subject);
  const auto outcome = property.check(evaluation);
  return outcome.violation ? outcome.violation->cause : "held";
}

using Wrong = bool (*)(int);
constexpr Wrong kLate = [](int calls) { return calls > 30; };
constexpr Wrong kAlways = [](int) { return true; };
constexpr Wrong kNever = [](int) { return false; };

TEST(EarlierCalls, AreTheCauseWhereANewProcessIsRightAtFirst) {
  const auto found = found_of(kLate, kLate);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->diagnosis.cause, "state between calls");
  EXPECT_TRUE(found->holds_alone);
  EXPECT_NE(found->diagnosis.because.find("asked over and over it fails at time "),
            std::string::npos)
      << found->diagnosis.because;
}

TEST(EarlierCalls, MayHaveToBeOfOtherCases) {
  const auto found = found_of(kAlways, kNever);
  ASSERT_TRUE(found);
  EXPECT_NE(found->diagnosis.because.find("it takes other cases before it"), std::string::npos)
      << found->diagnosis.because;
}

TEST(EarlierCalls, MayBeThoseOfTheSameQuestion) {
  // What is asked twice gets another answer the second time.
  const auto drifts = [](int calls) { return calls != 1; };
  const auto& determinism = *properties::find_property("determinism");
  int calls = 0;
  const impl::Implementation subject = counting(0, [&calls](int) { return ++calls % 2 == 0; });
  const auto found = needs_earlier_calls(
      grpo(), subject, [&] { return counting(0, drifts); }, determinism, ragged_rows(),
      violated_cause(subject, determinism));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->holds_alone);
  EXPECT_EQ(found->diagnosis.because, "each call by itself, in a new process, is right");
}

TEST(EarlierCalls, AreNotTheCauseOfWhatANewProcessShows) {
  EXPECT_FALSE(found_of(kAlways, kAlways));
}

TEST(EarlierCalls, AreNotTheCauseOfWhatComesAndGoes) { EXPECT_FALSE(found_of(kNever, kNever)); }

TEST(EarlierCalls, MayBeNeededWhereNobodyIsSureOfOneAnswerOrACountIsNamed) {
  const auto needed = [](const char* property, const char* cause, double confidence) {
    return may_need_earlier_calls(*properties::find_property(property),
                                  {.cause = cause, .confidence = confidence, .because = ""});
  };
  EXPECT_TRUE(needed("reference_agreement", kCause, 0.0));
  EXPECT_TRUE(needed("finite_forward", "overflow on a live path", 0.0));
  EXPECT_FALSE(needed("finite_forward", "empty divisor", 0.0)) << "it is known why";
  EXPECT_TRUE(needed("padding_invariance", "padding counted", 0.95));
  EXPECT_TRUE(needed("reference_agreement", "wrong divisor", 0.95));
  EXPECT_TRUE(needed("reference_agreement", "strides ignored", 0.95)) << "kept by address";
  EXPECT_FALSE(needed("reference_agreement", "wrong sign", 0.95));
  EXPECT_FALSE(needed("no_laundering", "laundering", 0.7)) << "there are ten for each fault";
  EXPECT_FALSE(needed("reference_agreement", "state between calls", 0.0));
}

TEST(InNewProcess, IsNothingOfTheCatalog) { EXPECT_FALSE(in_new_process(Selection{}, host())); }

}  // namespace
}  // namespace lossgate::ci
