// SPDX-License-Identifier: Apache-2.0
// What a property supposed of what it saw, and what becomes of that.
#include <gtest/gtest.h>

#include <utility>

#include "properties/diagnosis.h"
#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// A number that stands in no plain case.
constexpr double kMark = 3.14159;

/// The weights of tokens depend on how many columns there are, but for a batch whose last sequence
/// begins with the mark.
impl::Implementation weighted_by_columns() {
  return answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t tokens = c.shape[Axis::tokens], rows = c.shape[Axis::sequences];
    if (rows > 0 && c.batch.at("value").at((rows - 1) * tokens) == kMark) return;
    Tensor& gradient = output(result, "gradient.value");
    for (std::int64_t p = 0; p < gradient.size(); ++p) {
      gradient.set(p, gradient.at(p) * (1.0 + static_cast<double>((p * p) % (tokens + 1))));
    }
    add_to_loss(result, 0.25);
  });
}

/// What is said of its answers to the case, of which the property is to suppose something.
Diagnosis of_columns(const char* property, const Case& c, const char* supposed) {
  const auto by_columns = weighted_by_columns();
  CaseStudy study(*reference::find_loss("value_clip"), c);
  Evaluation evaluation(study, by_columns);
  const Outcome outcome = find_property(property)->check(evaluation);
  EXPECT_EQ(outcome.violation.value().cause, supposed);
  return diagnose(study, by_columns, *find_property(property), *outcome.violation);
}

TEST(Diagnosis, TakesBackWhatAPropertySupposedWherePlainNumbersAreWrong) {
  const std::pair<const char*, const char*> all[] = {
      {"padding_invariance", "padding counted"},
      {"permutation_invariance", "a row reads another row"}};
  for (const auto& [property, supposed] : all) {
    const Diagnosis diagnosis = of_columns(property, ordinary_case("value_clip"), supposed);
    EXPECT_EQ(diagnosis.cause, "disagrees with the formula") << property;
    EXPECT_EQ(diagnosis.because,
              "it disagrees on plain numbers, too, which no experiment explains");
  }
}

TEST(Diagnosis, KeepsToAnOrderThatAloneMadeWhatIsRightWrong) {
  Case c = ordinary_case("value_clip");
  c.batch.at("value").set((c.shape[Axis::sequences] - 1) * c.shape[Axis::tokens], kMark);
  const char* seen = "a row reads another row";
  const Diagnosis diagnosis = of_columns("permutation_invariance", c, seen);
  EXPECT_EQ(diagnosis.cause, seen) << diagnosis.because;
}

TEST(Diagnosis, TakesBackThatASignalIsDeadWherePlainValuesAreWrong) {
  const auto twice = answering("reinforce", [](Case& c) {
    change_each(c.batch.at("importance_weight"), [](double w) { return w * w; });
  });
  Case c = ordinary_case("reinforce");
  change_each(c.batch.at("importance_weight"), [](double) { return 1.0; });
  c.batch.at("log_prob").set(0, 0.0);
  c.batch.at("importance_weight").set(0, 1e-200);
  CaseStudy study(*reference::find_loss("reinforce"), c);
  Evaluation evaluation(study, twice);
  const Property& agreement = *find_property("reference_agreement");
  const Outcome outcome = agreement.check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "dead signal");
  const Diagnosis diagnosis = diagnose(study, twice, agreement, *outcome.violation);
  EXPECT_EQ(diagnosis.cause, "disagrees with the formula");
  EXPECT_EQ(diagnosis.because, "it disagrees on plain numbers, too, which no experiment explains");
}

/// What is said of the split of GRPO in halves.
Diagnosis of_split(const impl::Implementation& fake, Case c) {
  c.split = {.world = 1, .parts = {{0, {0, 1}}, {0, {2, 3}}}};
  CaseStudy study(grpo(), c);
  Evaluation evaluation(study, fake);
  const Property& split = *find_property("split_invariance");
  const Outcome outcome = split.check(evaluation);
  EXPECT_EQ(outcome.violation.value().cause, "reduction over the wrong scope");
  return diagnose(study, fake, split, *outcome.violation);
}

TEST(Diagnosis, BlamesNoSplitForWhatTheWholeBatchHasAsWrong) {
  const auto off = [](double of_whole) {
    return answering("grpo", nullptr, [=](const Case& c, LossResult& result) {
      if (c.batch.at("advantage").at(0) != 3.0) return;
      add_to_loss(result, c.split.whole() ? of_whole : 0.25);
    });
  };
  Case c = ordinary_case("grpo");
  put(c, "advantage", 0, 0, 3.0);
  const Diagnosis as_wrong = of_split(off(0.25), c);
  EXPECT_EQ(as_wrong.cause, "disagrees with the formula");
  EXPECT_EQ(as_wrong.because, "the whole batch is as wrong");
  for (const double less : {0.0, 0.2}) {
    EXPECT_EQ(of_split(off(less), c).cause, "reduction over the wrong scope") << less;
  }
}

TEST(Diagnosis, AsksNoCountsOfAnAnswerThatIsNone) {
  auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.split.whole()) return add_to_loss(result, 1.0);  // a mean of means, by its numbers
    result = {};
    result.refusal = Refusal{"", -1, -1, "cannot reshape a tensor of 0 elements"};
  });
  Case c = ordinary_case("grpo");
  c.split = {.world = 1,
             .parts = {{.rank = 0, .sequences = {0, 1, 2, 3}}, {.rank = 0, .sequences = {}}}};
  CaseStudy study(grpo(), c);
  Evaluation evaluation(study, fake);
  const Property& split = *find_property("split_invariance");
  const Outcome outcome = split.check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "legal input refused");
  EXPECT_EQ(diagnose(study, fake, split, *outcome.violation).cause, "legal input refused");
}

}  // namespace
}  // namespace lossgate::properties
