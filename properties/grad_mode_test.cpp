// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "properties/causes.h"
#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

constexpr const char* kProperty = "grad_mode_invariance";

/// An implementation that is differentiated, and whose answers change so.
impl::Implementation differentiated(const std::string& loss, ChangeAnswer change) {
  impl::Implementation fake = answering(loss, nullptr, std::move(change));
  fake.autograd = true;
  return fake;
}

Outcome asked(const impl::Implementation& fake, const Case& c) {
  CaseStudy study(*reference::find_loss(c.spec.loss), c);
  Evaluation evaluation(study, fake);
  return find_property(kProperty)->check(evaluation);
}

TEST(GradModeInvariance, SeesAGradientThatComesOnlyWithThoseOfFrozenInputs) {
  const auto fake = differentiated("linear_grpo", [](const Case& c, LossResult& result) {
    if (c.grad_mode != GradMode::first) return;
    change_each(output(result, "gradient.hidden"), [](double) { return 0.0; });
  });
  const Outcome outcome = asked(fake, ordinary_case("linear_grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->place.output, "gradient.hidden");
  EXPECT_EQ(outcome.violation->cause, "depends on requires_grad");
  EXPECT_EQ(outcome.violation->detail,
            "asked for the gradient of its first input alone it is another one");
}

TEST(GradModeInvariance, SeesAGradientThatComesOnlyWithThatOfTheFirstInput) {
  const auto fake = differentiated("linear_grpo", [](const Case& c, LossResult& result) {
    if (c.grad_mode != GradMode::all_but_first) return;
    change_each(output(result, "gradient.weight"), [](double) { return 0.0; });
  });
  const Outcome outcome = asked(fake, ordinary_case("linear_grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->place.output, "gradient.weight");
  EXPECT_EQ(outcome.violation->detail,
            "asked for all gradients but that of its first input it is another one");
}

TEST(GradModeInvariance, SeesAGradientThatComesOnlyWithAnyOtherOne) {
  const auto* signature = reference::find_signature("linear_grpo");
  const std::string gradients[] = {"hidden", "weight", "bias"};
  for (const std::string& lost : gradients) {
    for (const std::string& needed : gradients) {
      if (lost == needed) continue;
      SCOPED_TRACE(lost + " needs " + needed);
      const auto fake = differentiated("linear_grpo", [&](const Case& c, LossResult& result) {
        const bool alone = asks_gradient(*signature, c.grad_mode, lost) &&
                           !asks_gradient(*signature, c.grad_mode, needed);
        if (alone) change_each(output(result, "gradient." + lost), [](double) { return 0.0; });
      });
      const Outcome outcome = asked(fake, ordinary_case("linear_grpo"));
      ASSERT_TRUE(outcome.violation);
      EXPECT_EQ(outcome.violation->place.output, "gradient." + lost);
      EXPECT_EQ(outcome.violation->cause, "depends on requires_grad");
    }
  }
}

TEST(GradModeInvariance, LooksAtNoGradientThatNobodyAskedFor) {
  const auto* signature = reference::find_signature("linear_grpo");
  const auto fake = differentiated("linear_grpo", [&](const Case& c, LossResult& result) {
    for (Output& each : result.outputs) {
      if (!each.name.starts_with("gradient.")) continue;
      if (asks_gradient(*signature, c.grad_mode, each.name.substr(9))) continue;
      change_each(each.tensor, [](double) { return 7.0; });
    }
  });
  EXPECT_EQ(asked(fake, ordinary_case("linear_grpo")).verdict, Verdict::held);
}

TEST(GradModeInvariance, SeesAGradientThatComesOnlyWithAnother) {
  const auto* signature = reference::find_signature("linear_grpo");
  for (const std::string lost : {"hidden", "weight", "bias"}) {
    const auto fake = differentiated("linear_grpo", [&](const Case& c, LossResult& result) {
      std::int64_t asked_for = 0;
      for (const char* each : {"hidden", "weight", "bias"}) {
        asked_for += asks_gradient(*signature, c.grad_mode, each);
      }
      if (asked_for > 1) return;
      change_each(output(result, "gradient." + lost), [](double) { return 0.0; });
    });
    const Outcome outcome = asked(fake, ordinary_case("linear_grpo"));
    ASSERT_TRUE(outcome.violation) << lost;
    EXPECT_EQ(outcome.violation->place.output, "gradient." + lost);
    EXPECT_EQ(outcome.violation->cause, "depends on requires_grad");
  }
}

TEST(GradModeInvariance, NamesTheHistoryInWhichAGradientIsAnotherOne) {
  const std::pair<History, const char*> histories[] = {
      {History::evaluation, "with an evaluation of other data before its backward"},
      {History::two_forwards, "with two forwards of other data before its backward"},
      {History::summed_losses, "with the loss of other data added before its backward"},
      {History::backward_twice, "in a second backward of the same graph (retain_graph)"}};
  for (const auto& [history, detail] : histories) {
    const auto fake = differentiated("grpo", [&](const Case& c, LossResult& result) {
      if (c.history != history) return;
      change_each(output(result, "gradient.log_prob"), [](double x) { return x * 1.01; });
    });
    const Outcome outcome = asked(fake, ordinary_case("grpo"));
    ASSERT_TRUE(outcome.violation) << detail;
    EXPECT_EQ(outcome.violation->cause, "state between calls");
    EXPECT_EQ(outcome.violation->place.output, "gradient.log_prob");
    EXPECT_TRUE(outcome.violation->detail.starts_with(detail)) << outcome.violation->detail;
  }
}

TEST(GradModeInvariance, SeesWhatIsKeptOfParametersThatThenChange) {
  const auto fake = differentiated("linear_grpo", [&](const Case& c, LossResult& result) {
    if (c.history == History::updated) add_to_loss(result, 1.0);
  });
  const Outcome outcome = asked(fake, ordinary_case("linear_grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "state between calls");
  EXPECT_TRUE(outcome.violation->detail.starts_with(
      "after a step of other parameters, which were then changed in place (optimizer.step)"))
      << outcome.violation->detail;
  CaseStudy without_parameters(grpo(), grpo_case(2, 3));
  EXPECT_FALSE(without_parameters.transformed(kUpdated));
}

TEST(GradModeInvariance, AsksWhoReturnsTermsForThoseOfEverySecondSequence) {
  const auto fake = differentiated("grpo", [](const Case& c, LossResult& result) {
    if (c.history != History::backward_by_rows) return;
    change_each(output(result, "gradient.log_prob"), [](double x) { return x * 0.5; });
  });
  EXPECT_EQ(asked(fake, ordinary_case("grpo")).verdict, Verdict::held) << "it returns its loss";
  reference::Loss of_terms = *reference::find_loss("grpo");
  of_terms.signature.returns_terms = true;
  CaseStudy study(of_terms, ordinary_case("grpo"));
  Evaluation evaluation(study, fake);
  const Outcome outcome = find_property(kProperty)->check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "wrong upstream factor");
  EXPECT_TRUE(outcome.violation->detail.starts_with(
      "with every second sequence's terms in a backward of their own"))
      << outcome.violation->detail;
}

TEST(GradModeInvariance, AsksUnderAutocastWhereThatIsPromised) {
  int calls = 0;
  auto fake = differentiated("grpo", [&](const Case& c, LossResult& result) {
    if (c.history != History::autocast) return;
    ++calls;
    add_to_loss(result, 0.1);
  });
  reference::Loss promised = *reference::find_loss("grpo");
  const auto of_format = [&](Dtype dtype) {
    CaseStudy study(promised, ordinary_case("grpo", dtype));
    Evaluation evaluation(study, fake);
    return find_property(kProperty)->check(evaluation);
  };
  EXPECT_EQ(of_format(Dtype::f32).verdict, Verdict::held);
  promised.signature.autocast = true;
  EXPECT_EQ(of_format(Dtype::f64).verdict, Verdict::held) << "it narrows what is wide, not f64";
  EXPECT_EQ(of_format(Dtype::bf16).verdict, Verdict::held) << "a product rounds to it as it is";
  EXPECT_EQ(calls, 0) << "it costs nothing";
  for (const bool grad_modes : {true, false}) {
    fake.contract.grad_modes = grad_modes;
    const Outcome outcome = of_format(Dtype::f32);
    ASSERT_TRUE(outcome.violation) << "one promise says nothing of the other";
    EXPECT_EQ(outcome.violation->cause, "narrowed by autocast");
    EXPECT_TRUE(find_cause(outcome.violation->cause));
    EXPECT_EQ(outcome.violation->place.output, "loss");
    EXPECT_EQ(outcome.violation->detail,
              "with its forward inside torch.autocast it is another one");
  }
  EXPECT_EQ(calls, 2);
}

TEST(GradModeInvariance, AsksUnderAutocastAloneOfWhoPromisesNoOtherWay) {
  std::set<History> asked;
  std::set<GradMode> modes;
  auto fake = differentiated("grpo", [&](const Case& c, LossResult&) {
    asked.insert(c.history);
    modes.insert(c.grad_mode);
  });
  fake.contract.grad_modes = false;
  reference::Loss promised = *reference::find_loss("grpo");
  promised.signature.autocast = true;
  CaseStudy study(promised, ordinary_case("grpo", Dtype::f32));
  Evaluation evaluation(study, fake);
  EXPECT_EQ(find_property(kProperty)->check(evaluation).verdict, Verdict::held);
  EXPECT_EQ(asked, (std::set{History::alone, History::autocast}));
  EXPECT_EQ(modes, std::set{GradMode::all});
  CaseStudy wide(promised, ordinary_case("grpo", Dtype::f64));
  Evaluation of_wide(wide, fake);
  EXPECT_EQ(find_property(kProperty)->check(of_wide).reason, "contract") << "nothing is left";
}

TEST(GradModeInvariance, NamesWhatIsRaisedAndInWhichMode) {
  const auto fake = differentiated("grpo", [](const Case& c, LossResult& result) {
    if (c.grad_mode == GradMode::none) result.refusal = Refusal{"", -1, -1, "no grad_weight"};
  });
  const Outcome outcome = asked(fake, ordinary_case("grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "depends on requires_grad");
  EXPECT_EQ(outcome.violation->detail,
            "asked for no gradient (torch.no_grad): refused a legal input: no grad_weight");
}

TEST(GradModeInvariance, AsksTheOtherWaysOfWhoDoesNotComputeOne) {
  bool wrong = true;
  const auto fake = differentiated("grpo", [&](const Case& c, LossResult& result) {
    if (c.grad_mode == GradMode::none) {
      result.refusal = Refusal{impl::kNotComputed, -1, -1, "needs its graph"};
    } else if (wrong && c.history == History::backward_twice) {
      change_each(output(result, "gradient.log_prob"), [](double x) { return x * 1.01; });
    }
  });
  EXPECT_TRUE(asked(fake, ordinary_case("grpo")).violation);
  wrong = false;
  EXPECT_EQ(asked(fake, ordinary_case("grpo")).verdict, Verdict::held);
}

TEST(GradModeInvariance, SeesAnInputThatOnlyAnEvaluationOverwrites) {
  const auto fake = differentiated("grpo", [](const Case& c, LossResult& result) {
    if (c.grad_mode == GradMode::none) result.mutated = {"advantage"};
  });
  const Outcome outcome = asked(fake, ordinary_case("grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "input overwritten");
}

TEST(GradModeInvariance, SeesASettingThatOnlyAHistoryLeavesChanged) {
  const auto fake = differentiated("grpo", [](const Case& c, LossResult& result) {
    const bool evaluates = c.history == History::evaluation;
    if (evaluates) result.changed_settings = {"torch.is_grad_enabled() is False"};
  });
  const Outcome outcome = asked(fake, ordinary_case("grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "setting left changed");
  EXPECT_EQ(outcome.violation->detail,
            "with an evaluation of other data before its backward: torch.is_grad_enabled() is "
            "False afterwards, and was not before");
}

TEST(GradModeInvariance, HasNothingAgainstAWrongAnswerThatIsTheSameInAllModes) {
  const auto fake =
      differentiated("grpo", [](const Case&, LossResult& result) { add_to_loss(result, 0.1); });
  EXPECT_EQ(asked(fake, ordinary_case("grpo")).verdict, Verdict::held);
}

TEST(GradModeInvariance, BlamesNoModeWhereEveryCallIsAnotherOne) {
  const auto fake =
      differentiated("grpo", [calls = std::make_shared<int>(0)](const Case&, LossResult& result) {
        add_to_loss(result, 0.1 * (*calls)++);
      });
  const Outcome outcome = asked(fake, ordinary_case("grpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "state between calls");
}

TEST(GradModeInvariance, IsNotAskedOfWhoReturnsGradientsOrPromisesNothing) {
  impl::Implementation fake = answering("grpo", nullptr);
  EXPECT_EQ(asked(fake, ordinary_case("grpo")).reason, "its gradients come with its loss");
  fake.autograd = true;
  EXPECT_EQ(asked(fake, ordinary_case("grpo")).verdict, Verdict::held);
  fake.contract.grad_modes = false;
  EXPECT_EQ(asked(fake, ordinary_case("grpo")).reason, "contract");
}

TEST(GradModeInvariance, HasNothingBetweenOfOneSequence) {
  CaseStudy study(grpo(), grpo_case(1, 3));
  EXPECT_FALSE(study.transformed(kEvaluatedBetween));
  EXPECT_FALSE(study.transformed(kBackwardTwice));
  EXPECT_FALSE(study.transformed(kSecondAlone)) << "it has one gradient";
  EXPECT_FALSE(study.transformed(kFirstAlone)) << "it has one gradient";
  EXPECT_FALSE(study.transformed(kFirstFrozen)) << "it has one gradient";
  EXPECT_FALSE(study.transformed(kThirdFrozen)) << "it has one gradient";
  EXPECT_TRUE(study.transformed(kWithoutGradients));
}

}  // namespace
}  // namespace lossgate::properties
