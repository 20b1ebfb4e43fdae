// SPDX-License-Identifier: Apache-2.0
#include "properties/advice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// GRPO, its values given as advice. `judges` is said of every arithmetic.
reference::Loss advised_grpo(bool (*judges)(const Arithmetic&)) {
  reference::Loss loss = grpo();
  loss.advice = {.values =
                     [](const reference::Problem& problem, const Arithmetic& arithmetic,
                        reference::Sink<reference::Tracked>& sink) {
                       reference::evaluate(grpo(), problem, arithmetic, sink);
                     },
                 .judges = judges};
  return loss;
}

bool always(const Arithmetic&) { return true; }
bool never(const Arithmetic&) { return false; }

Outcome advised(const char* property, const impl::Implementation& fake, Case c,
                bool (*judges)(const Arithmetic&)) {
  const reference::Loss loss = advised_grpo(judges);
  CaseStudy study(loss, std::move(c));
  Evaluation evaluation(study, fake);
  return find_property(property)->check(evaluation);
}

Case in_two_parts() {
  Case c = grpo_case(2, 3);
  mask_out(c, 1, 1);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}}};
  return c;
}

TEST(RuleE8, DisagreementWithAdviceIsANote) {
  const auto biased = fake_grpo(Flaw::slope_biased, 0.1);
  const Outcome outcome = advised("reference_agreement", biased, grpo_case(2, 3), never);
  EXPECT_EQ(outcome.verdict, Verdict::note);
  EXPECT_TRUE(outcome.reason.starts_with("advisory: ")) << outcome.reason;
  EXPECT_FALSE(outcome.violation);
  EXPECT_EQ(advised("reference_agreement", biased, grpo_case(2, 3), always).verdict,
            Verdict::skipped);
  EXPECT_EQ(advised("reference_agreement", fake_grpo(), grpo_case(2, 3), never).verdict,
            Verdict::held);
}

TEST(RuleE8, NoAnswerIsAFindingBesideAdvice) {
  impl::Implementation raises = fake_grpo();
  raises.evaluate = [](const LossSignature&, const Case&) {
    LossResult refused;
    refused.refusal = Refusal{.argument = "log_prob", .message = "of more than two tokens"};
    return refused;
  };
  for (auto judges : {always, never}) {
    EXPECT_EQ(advised("reference_agreement", raises, grpo_case(2, 3), judges).verdict,
              Verdict::violated);
  }
}

TEST(RuleE8, ASplitIsJudgedWhereRoundingIsFine) {
  const auto means = fake_grpo(Flaw::mean_of_means);
  EXPECT_EQ(advised("split_invariance", means, in_two_parts(), never).verdict, Verdict::note);
  EXPECT_EQ(advised("split_invariance", means, in_two_parts(), always).verdict, Verdict::violated);
  EXPECT_EQ(advised("split_invariance", fake_grpo(), in_two_parts(), always).verdict,
            Verdict::held);
}

TEST(RuleE8, WhatNeedsNoReferenceIsAFinding) {
  for (auto judges : {always, never}) {
    EXPECT_EQ(
        advised("masked_positions_inert", fake_grpo(Flaw::mask_multiplied), in_two_parts(), judges)
            .verdict,
        Verdict::violated);
    EXPECT_EQ(
        advised("empty_is_zero", fake_grpo(Flaw::empty_divided), in_two_parts(), judges).verdict,
        Verdict::violated);
  }
}

TEST(RuleE8, WhatHasNoNumberWhereNothingCountsIsWrongWithoutAFormula) {
  reference::Loss unknown = grpo();
  unknown.advice = {.values = [](const reference::Problem&, const Arithmetic&,
                                 reference::Sink<reference::Tracked>&) {},
                    .judges = never};
  Case c = grpo_case(1, 2);
  for (const std::int64_t t : {0, 1}) mask_out(c, 0, t);
  put(c, "old_log_prob", 0, 0, -1000.0);
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& asked) {
    LossResult result = sound(signature, asked);
    if (get(asked, "old_log_prob", 0, 0) == -1000.0) add_to_loss(result, std::nan(""));
    return result;
  };
  CaseStudy study(unknown, c);
  Evaluation evaluation(study, fake);
  const Outcome outcome = find_property("masked_positions_inert")->check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_FALSE(std::isfinite(outcome.violation->actual));
  EXPECT_TRUE(std::isfinite(static_cast<double>(outcome.violation->expected)));
}

TEST(RuleE8, WhatAnEmptyRowChangesHangsOnTheReference) {
  Case c = grpo_case(3, 4);
  c.spec.reduction = Reduction::sequence_mean;
  const auto counted = fake_grpo(Flaw::sequence_counted);
  const Outcome judged = advised("empty_is_zero", counted, c, always);
  ASSERT_TRUE(judged.violation);
  EXPECT_GT(judged.violation->allowed, 0.0) << "by its rounding";
  EXPECT_EQ(advised("empty_is_zero", counted, c, never).verdict, Verdict::note);
}

TEST(RuleE8, AdviceIsAskedOneQuestionAtATime) {
  std::set<std::thread::id> asking;
  reference::Loss loss = advised_grpo(never);
  loss.advice->values = [&asking, values = loss.advice->values](
                            const reference::Problem& problem, const Arithmetic& arithmetic,
                            reference::Sink<reference::Tracked>& sink) {
    asking.insert(std::this_thread::get_id());
    values(problem, arithmetic, sink);
  };
  CaseStudy study(loss, grpo_case(2, 3));
  const impl::Implementation fake = fake_grpo();
  Evaluation evaluation(study, fake);
  const Property& differences = *find_property("gradient_matches_finite_difference");
  EXPECT_EQ(differences.check(evaluation).verdict, Verdict::held);
  EXPECT_EQ(asking, std::set{std::this_thread::get_id()});
}

TEST(RuleE8, ANanIsLaunderedThoughTheAdviceLaundersItToo) {
  const reference::Loss formula = grpo();
  const auto repaired = [](Case c) {
    for (auto& [name, tensor] : c.batch.fields) {
      for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.size(); ++i) {
        if (std::isnan(tensor.at(i))) tensor.set(i, 0.0);
      }
    }
    return c;
  };
  reference::Loss loss = advised_grpo(never);
  loss.advice->values = [&](const reference::Problem& problem, const Arithmetic& arithmetic,
                            reference::Sink<reference::Tracked>& sink) {
    const Case c = repaired(problem.c);
    reference::Problem asked(formula.signature, c);
    asked.outputs.resize(problem.outputs.size());
    reference::evaluate(formula, asked, arithmetic, sink);
  };
  const impl::Implementation sound = fake_grpo();
  impl::Implementation launders = sound;
  launders.evaluate = [&](const LossSignature& signature, const Case& c) {
    return sound.evaluate(signature, repaired(c));
  };
  int laundered = 0;
  for (int i = 0; i < 20; ++i) {
    Case c = grpo_case(2, 3);
    put(c, "log_prob", 0, 0, -0.01 * (i + 1));  // another choice
    CaseStudy study(loss, c);
    Evaluation of_launders(study, launders), of_sound(study, sound);
    const Property& property = *find_property("no_laundering");
    laundered += property.check(of_launders).violation.has_value();
    EXPECT_FALSE(property.check(of_sound).violation);
  }
  EXPECT_GT(laundered, 5);
}

TEST(RuleE8, AFiniteLossOfFiniteInputsHasNoNanForAGradient) {
  // As the same function in f64 would have it: the reference has no number there, either.
  reference::Loss loss = advised_grpo(never);
  loss.advice->values = [](const reference::Problem& problem, const Arithmetic&,
                           reference::Sink<reference::Tracked>& sink) {
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      for (std::int64_t i = 0; i < element_count(problem.outputs[o].extents); ++i) {
        sink.entry(o, i, {std::nanl(""), 0.0, 0.0, 0.0});
      }
    }
  };
  Case c = grpo_case(1, 2);
  c.spec.set("log_ratio_clamp", 20.0);
  put(c, "advantage", 0, 0, 1.0);
  put(c, "old_log_prob", 0, 0, -1000.0);
  CaseStudy study(loss, c);
  impl::Implementation fake = fake_grpo();
  const Property& finite = *find_property("finite_backward");
  Evaluation sound(study, fake);
  EXPECT_FALSE(finite.check(sound).violation);
  fake.evaluate = [whole = fake.evaluate](const LossSignature& signature, const Case& given) {
    LossResult result = whole(signature, given);
    for (Output& output : result.outputs) {
      if (output.name == "gradient.log_prob") output.tensor.set(0, std::nan(""));
    }
    return result;
  };
  Evaluation broken(study, fake);
  const Outcome outcome = finite.check(broken);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "infinite slope");
  // 0 times a slope without end may be NaN.
  c.upstream = 0.0;
  CaseStudy silent(loss, c);
  Evaluation of_nothing(silent, fake);
  EXPECT_FALSE(finite.check(of_nothing).violation);
  // What else is NaN is no gradient.
  impl::Implementation forward = fake;
  forward.evaluate = [](const LossSignature& signature, const Case& given) {
    LossResult result = fake_grpo().evaluate(signature, given);
    result.outputs[1].tensor.set(0, std::nan(""));
    return result;
  };
  Evaluation no_value(study, forward);
  EXPECT_FALSE(finite.check(no_value).violation);
  // The same beside an infinite loss is what overflow does.
  fake.evaluate = [whole = fake.evaluate](const LossSignature& signature, const Case& given) {
    LossResult result = whole(signature, given);
    for (Output& output : result.outputs) {
      if (output.name == "loss") output.tensor.set(0, HUGE_VAL);
    }
    return result;
  };
  Evaluation overflown(study, fake);
  EXPECT_FALSE(finite.check(overflown).violation);
}

}  // namespace
}  // namespace lossgate::properties
