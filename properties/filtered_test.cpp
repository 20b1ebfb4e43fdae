// SPDX-License-Identifier: Apache-2.0
// The same verdicts, whether double is asked or not.
#include "properties/filtered.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "impl/catalog.h"
#include "properties/fake_answer.h"
#include "properties/property.h"
#include "reference/given_case.h"

namespace lossgate::properties {
namespace {

std::vector<const Property*> all_properties() {
  std::vector<const Property*> all;
  for (const Property& property : catalog()) all.push_back(&property);
  return all;
}

std::vector<Outcome> outcomes(const reference::Loss& loss, const impl::Implementation& asked,
                              const Case& c, bool filtered) {
  CaseStudy study(loss, c);
  study.filtered = filtered;
  Evaluation evaluation(study, asked);
  return check_all(evaluation, all_properties(), false);
}

void expect_same(const Outcome& fast, const Outcome& slow) {
  EXPECT_EQ(fast.verdict, slow.verdict);
  EXPECT_EQ(fast.reason, slow.reason);
  EXPECT_EQ(fast.compared, slow.compared);
  EXPECT_EQ(fast.no_digit, slow.no_digit);
  EXPECT_GE(fast.worst_ratio, slow.worst_ratio);
  EXPECT_LE(fast.worst_ratio, slow.worst_ratio * (1.0 + 0x1p-12) + 0x1p-12);
  ASSERT_EQ(fast.violation.has_value(), slow.violation.has_value());
  if (!fast.violation) return;
  EXPECT_EQ(fast.violation->place.output, slow.violation->place.output);
  EXPECT_EQ(fast.violation->place.index, slow.violation->place.index);
  EXPECT_EQ(fast.violation->error_ratio, slow.violation->error_ratio);
  EXPECT_EQ(fast.violation->allowed, slow.violation->allowed);
  EXPECT_EQ(fast.violation->cause, slow.violation->cause);
}

/// Asks every implementation of every loss that has a filter, those that are wrong on purpose too.
template <class Check>
void for_every_implementation(int count, Check&& check) {
  for (const impl::Implementation& asked : impl::catalog(true)) {
    const reference::Loss& loss = *reference::find_loss(asked.loss);
    if (reference::approximators_of(loss).empty()) continue;
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
      reference::SmallCases cases(loss.signature, 31, 9);
      for (int i = 0; i < count; ++i) {
        Case c = cases.draw(dtype);
        if (i % 2 == 0) c.split.parts = {{0, {0}}, {0, {}}};
        for (std::int64_t s = 1; i % 2 == 0 && s < c.shape[Axis::sequences]; ++s) {
          c.split.parts[1].sequences.push_back(s);
        }
        if (asked.unsupported && asked.unsupported(c)) continue;
        SCOPED_TRACE(asked.name + ", " + asked.loss + ", " + std::string(name(dtype)) + ", case " +
                     std::to_string(i));
        check(loss, asked, c);
      }
    }
  }
}

TEST(Filtered, VerdictsAreThoseOfTheLongDoubleReference) {
  std::map<Verdict, int> seen;
  for_every_implementation(4, [&](const auto& loss, const auto& asked, const Case& c) {
    const auto fast = outcomes(loss, asked, c, true), slow = outcomes(loss, asked, c, false);
    for (std::size_t i = 0; i < fast.size(); ++i) {
      SCOPED_TRACE(catalog()[i].name);
      expect_same(fast[i], slow[i]);
      ++seen[fast[i].verdict];
    }
  });
  EXPECT_GT(seen[Verdict::held], 1000);
  EXPECT_GT(seen[Verdict::violated], 300);
  EXPECT_GT(seen[Verdict::vacuous], 100);
}

TEST(Filtered, ComparisonsAreMostOfThoseThatHold) {
  int held = 0, decided = 0;
  for_every_implementation(4, [&](const auto& loss, const auto& asked, const Case& c) {
    CaseStudy study(loss, c);
    Evaluation evaluation(study, asked);
    if (incomparable(evaluation)) return;
    const Comparison comparison{
        .study = study, .arithmetic = evaluation.arithmetic(), .actual = evaluation.actual()};
    if (compare(comparison).violation) {
      EXPECT_FALSE(compare_filtered(comparison)) << "what is violated is seen by the reference";
      return;
    }
    ++held;
    decided += compare_filtered(comparison).has_value();
  });
  EXPECT_GT(decided, held / 3) << decided << " of " << held;
}

TEST(Filtered, TheLargestRatioStaysBesideWhatIsOffByNoMoreThanItsStore) {
  Case c = ordinary_case("kl_penalty", Dtype::bf16);
  c.spec.reduction = Reduction::sum;
  c.spec.set("kl_estimator", std::string("k1"));
  const reference::Loss& loss = *reference::find_loss("kl_penalty");
  LossResult actual = answering("kl_penalty", nullptr).evaluate(loss.signature, c);
  change_each(output(actual, "per_token"), [](double x) { return (1.0 + 0x1p-23) * x; });
  // Each slope is 1, without an error: half of bf16's step there is the step below.
  change_each(output(actual, "gradient.log_prob"), [](double g) { return (1.0 - 0x1p-8) * g; });
  CaseStudy study(loss, c);
  const Comparison comparison{
      .study = study, .arithmetic = plain_arithmetic(Dtype::f32, ""), .actual = actual};
  const auto fast = compare_filtered(comparison);
  ASSERT_TRUE(fast);
  study.filtered = false;
  const Outcome slow = compare(comparison);
  EXPECT_GT(slow.worst_ratio, 0.0);
  expect_same(*fast, slow);
}

/// A case of zeros, so large.
Case zeros_of(const reference::Loss& loss, std::int64_t sequences, std::int64_t tokens) {
  Case c = ordinary_case(loss.signature.id, Dtype::f32);
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  for (const Field& field : loss.signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    tensor = Tensor::zeros(tensor.dtype, c.shape.of(field.axes));
  }
  return c;
}

TEST(Filtered, NothingMustBeFiniteWhereTheOneSlopeOverflowsOnTheWay) {
  const reference::Loss& loss = *reference::find_loss("kl_penalty");
  Case c = zeros_of(loss, 1, 1);
  for (const char* limit : {"kl_input_clamp", "kl_output_clamp", "log_ratio_clamp"}) {
    c.spec.set(limit, None{});
  }
  c.spec.set("kl_weighted", 1.0);
  // A backward has exp(88.5) exp(0.25), which f32 has not, on the way to exp(88.5) (1 - exp(0.25)).
  c.batch.at("old_log_prob").set(0, -88.5);
  c.batch.at("ref_log_prob").set(0, 0.25);
  c.batch.at("mask").set(0, 1.0);
  const auto asked = answering(loss.signature.id, nullptr);
  for (const bool filtered : {true, false}) {
    CaseStudy study(loss, c);
    study.filtered = filtered;
    Evaluation evaluation(study, asked);
    EXPECT_EQ(find_property("finite_forward")->check(evaluation).verdict, Verdict::held);
    EXPECT_EQ(find_property("finite_backward")->check(evaluation).reason, "no trigger") << filtered;
  }
}

TEST(Filtered, OfNoEntryNothingIsSaid) {
  const reference::Loss& loss = *reference::find_loss("advantage_scaling");
  const Case c = zeros_of(loss, 0, 5);
  const auto asked = answering(loss.signature.id, nullptr);
  for (const bool filtered : {true, false}) {
    CaseStudy study(loss, c);
    study.filtered = filtered;
    Evaluation evaluation(study, asked);
    const Outcome outcome = find_property("reference_agreement")->check(evaluation);
    EXPECT_EQ(outcome.verdict, Verdict::skipped) << filtered;
    EXPECT_EQ(outcome.reason, "nothing to compare") << filtered;
  }
}

}  // namespace
}  // namespace lossgate::properties
