// SPDX-License-Identifier: Apache-2.0
// How often the formula is asked: it takes longer than what it judges.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/property.h"

namespace lossgate::properties {
namespace {

using impl::Implementation;
using reference::Tracked;

int times = 0;

/// GRPO, which counts how often it is asked.
reference::Loss counted() {
  times = 0;
  reference::Loss loss = grpo();
  loss.evaluate = [](const reference::Inputs<Tracked>& in, const reference::Outputs<Tracked>& out) {
    ++times;
    grpo().evaluate(in, out);
  };
  return loss;
}

Outcome ask(std::string_view property, const Implementation& implementation, const Case& c) {
  const reference::Loss loss = counted();
  CaseStudy study(loss, c);
  Evaluation evaluation(study, implementation);
  return find_property(property)->check(evaluation);
}

/// The fake, but for the loss, which is always the same.
Implementation stuck_at(double loss, Flaw flaw = Flaw::none) {
  Implementation fake = fake_grpo(flaw);
  fake.evaluate = [loss, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    if (!result.refusal) output(result, "loss").set(0, loss);
    return result;
  };
  return fake;
}

void expect_vacuous(const Outcome& outcome, std::string_view reason) {
  EXPECT_EQ(outcome.verdict, Verdict::vacuous);
  EXPECT_EQ(outcome.reason, reason);
}

TEST(TheFormula, IsAskedOnceForTheWholeAndForItsParts) {
  Case c = grpo_case(4, 8);
  c.split = {.world = 2, .parts = {{0, {0}}, {1, {1}}, {0, {2}}, {1, {3}}}};
  const reference::Loss loss = counted();
  CaseStudy study(loss, c);
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  for (const bool split : {false, true, false}) {
    int seen = 0;
    study.for_each_expected(single, split,
                            [&](std::size_t, std::int64_t, const Tracked&) { ++seen; });
    EXPECT_GT(seen, 0);
  }
  EXPECT_EQ(times, 1);
}

TEST(TheFormula, IsNotAskedWhatBecameOfAPoisonThatLeftNoNumber) {
  EXPECT_EQ(ask("no_laundering", fake_grpo(), grpo_case(2, 3)).verdict, Verdict::held);
  EXPECT_EQ(times, 0);
}

TEST(TheFormula, IsAskedWhatBecameOfAPoisonThatLeftOne) {
  EXPECT_TRUE(ask("no_laundering", fake_grpo(Flaw::nan_replaced), grpo_case(2, 3)).violation);
  EXPECT_GT(times, 0);
}

TEST(RuleC3, IsNotAskedOfALossThatIsNoNumberEither) {
  expect_vacuous(ask("no_laundering", stuck_at(INFINITY), grpo_case(2, 3)), "no trigger");
}

TEST(TheFormula, IsAskedAtBothEndsOfAStepThatMovesTheLoss) {
  const Outcome outcome = ask("gradient_matches_finite_difference", fake_grpo(), grpo_case(2, 3));
  EXPECT_EQ(outcome.verdict, Verdict::held);
  EXPECT_EQ(times, 3);
}

TEST(TheFormula, IsNotAskedAtTheEndsWhereNeitherLossNorGradientMoves) {
  expect_vacuous(
      ask("gradient_matches_finite_difference", stuck_at(0.25, Flaw::signal_dead), grpo_case(2, 3)),
      "no digit");
  EXPECT_EQ(times, 1);
}

TEST(TheFormula, IsAskedWhereALossStandsStillAndItsGradientDoesNot) {
  EXPECT_TRUE(ask("gradient_matches_finite_difference", stuck_at(0.25), grpo_case(2, 3)).violation);
  EXPECT_EQ(times, 3);
}

TEST(TheFormula, IsNotAskedAtTheEndsOfAStepToNoNumber) {
  expect_vacuous(ask("gradient_matches_finite_difference", stuck_at(INFINITY), grpo_case(2, 3)),
                 "no trigger");
  EXPECT_EQ(times, 0);
}

}  // namespace
}  // namespace lossgate::properties
