// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

struct Trial {
  std::string property;
  Flaw flaw;
  double amount;
  std::function<void(Case&)> prepare;
  std::string cause;
};

/// Three ragged sequences over two ranks; what a case needs beyond that to show the flaw.
Case trial_case(const Trial& trial) {
  Case c = grpo_case(3, 4);
  mask_out(c, 0, 2);
  mask_out(c, 0, 3);
  mask_out(c, 1, 3);
  c.split = {.world = 2, .parts = {{0, {0}}, {1, {1, 2}}, {1, {}}}};
  if (trial.prepare) trial.prepare(c);
  return c;
}

void unclamped(Case& c) { c.spec.set("log_ratio_clamp", None{}); }

void overflowing_mask(Case& c) {
  unclamped(c);
  put_log_ratio(c, 0, 3, 89.0);
  put(c, "advantage", 0, 3, -1.0);  // the clip does not bound it
}

void overflowing_weight(Case& c) {
  unclamped(c);
  put_log_ratio(c, 0, 0, 200.0);
  put(c, "advantage", 0, 0, 1.0);
}

void mean_by_sequence(Case& c) {
  c.spec.reduction = Reduction::sequence_mean;
  for (std::int64_t t = 0; t < 4; ++t) mask_out(c, 0, t);
}

const std::vector<Trial>& trials() {
  static const std::vector<Trial> all = {
      {"finite_forward", Flaw::mask_multiplied, 0, overflowing_mask,
       "non-finite value behind a mask"},
      {"finite_backward", Flaw::mask_multiplied, 0, overflowing_mask,
       "non-finite value behind a mask"},
      {"finite_backward", Flaw::clamped_after_exp, 0,
       [](Case& c) {
         put_log_ratio(c, 0, 0, 100.0);
         put(c, "advantage", 0, 0, -1.0);
       },
       "non-finite slope behind a bound"},
      {"masked_positions_inert", Flaw::mask_multiplied, 0, unclamped,
       "non-finite value behind a mask"},
      {"masked_positions_inert", Flaw::masked_data_read, 0, nullptr, "masked data leaks"},
      {"masked_positions_inert", Flaw::masked_gradient, 0, nullptr,
       "gradient at a masked position"},
      {"no_laundering", Flaw::nan_replaced, 0, nullptr, "laundering"},
      {"no_laundering", Flaw::nan_replaced_inputs, 0, nullptr, "laundering"},
      {"error_on_invalid", Flaw::invalid_accepted, 0, nullptr, "invalid input accepted"},
      {"error_on_invalid", Flaw::argument_misnamed, 0, nullptr, "refusal names another argument"},
      {"empty_is_zero", Flaw::empty_divided, 0, nullptr, "empty divisor"},
      {"empty_is_zero", Flaw::mask_multiplied, 0, overflowing_mask,
       "non-finite value behind a mask"},
      {"empty_is_zero", Flaw::sequence_counted, 0,
       [](Case& c) { c.spec.reduction = Reduction::sequence_mean; }, "empty row counted"},
      {"zero_advantage_zero_gradient", Flaw::zero_multiplied, 0, overflowing_weight,
       "zero times infinity"},
      {"reference_agreement", Flaw::slope_biased, 1e-5, nullptr, "disagrees with the formula"},
      {"reference_agreement", Flaw::value_biased, 1e-5, nullptr, "disagrees with the formula"},
      {"reference_agreement", Flaw::signal_dead, 0, nullptr, "dead signal"},
      {"reference_agreement", Flaw::upstream_ignored, 0, [](Case& c) { c.upstream = 0.5; },
       "disagrees with the formula"},
      {"reference_agreement", Flaw::padding_counted, 0, nullptr, "disagrees with the formula"},
      {"reference_agreement", Flaw::sequence_counted, 0, mean_by_sequence,
       "disagrees with the formula"},
      {"reference_agreement", Flaw::row_reads_neighbour, 0, nullptr, "disagrees with the formula"},
      {"reference_agreement", Flaw::legal_refused, 0, nullptr, "legal input refused"},
      {"reference_agreement", Flaw::output_missing, 0, nullptr, "malformed result"},
      {"reference_agreement", Flaw::dtype_changed, 0, nullptr, "malformed result"},
      {"split_invariance", Flaw::mean_of_means, 0, nullptr, "mean of means"},
      {"padding_invariance", Flaw::padding_counted, 0, nullptr, "padding counted"},
      {"padding_invariance", Flaw::empty_divided, 0,
       [](Case& c) { c.spec.reduction = Reduction::sequence_mean; }, "empty divisor"},
      {"permutation_invariance", Flaw::row_reads_neighbour, 0, nullptr, "a row reads another row"},
      {"inputs_not_mutated", Flaw::input_overwritten, 0, nullptr, "input overwritten"},
      {"inputs_not_mutated", Flaw::setting_changed, 0, nullptr, "setting left changed"},
      {"determinism", Flaw::order_varies, 0, nullptr, "order of operations varies"},
      {"grad_mode_invariance", Flaw::grad_mode_read, 0, nullptr, "depends on requires_grad"},
      {"on_policy_identity", Flaw::kl_biased, 1e-3, nullptr, "disagrees with the formula"},
      {"gradient_matches_finite_difference", Flaw::slope_biased, 0.5,
       [](Case& c) { c.spec.set("clip_high", 4.0), c.spec.set("clip_low", 0.9); },
       "backward is not the derivative"},
      {"finite_for_every_finite_input", Flaw::none, 0,
       [](Case& c) {
         unclamped(c);
         put_log_ratio(c, 0, 0, 100.0);
         put(c, "advantage", 0, 0, -1.0);
       },
       "unbounded exponent"},
  };
  return all;
}

class EachProperty : public testing::TestWithParam<Trial> {};

TEST_P(EachProperty, HoldsForASoundImplementationAndFallsToABrokenOne) {
  const Trial& trial = GetParam();
  const Case c = trial_case(trial);
  if (trial.flaw != Flaw::none) {
    const Outcome sound = check(trial.property, fake_grpo(), c);
    EXPECT_EQ(sound.verdict, Verdict::held)
        << sound.reason << (sound.violation ? sound.violation->detail : "");
    EXPECT_LE(sound.no_digit, sound.compared);
  }
  const Outcome broken = check(trial.property, fake_grpo(trial.flaw, trial.amount), c);
  ASSERT_EQ(broken.verdict, Verdict::violated) << broken.reason;
  EXPECT_EQ(broken.violation->cause, trial.cause);
  EXPECT_FALSE(broken.violation->detail.empty());
}

INSTANTIATE_TEST_SUITE_P(Catalog, EachProperty, testing::ValuesIn(trials()), [](const auto& info) {
  return info.param.property + "_" + std::to_string(info.index);
});

TEST(Catalog, EveryPropertyHasATrialOfItsOwn) {
  for (const Property& property : catalog()) {
    if (property.name == "path_parity" || property.name == "bounds_hold") continue;  // elsewhere
    EXPECT_TRUE(std::ranges::any_of(trials(), [&](const Trial& trial) {
      return trial.property == property.name;
    })) << property.name;
  }
}

TEST(FiniteDifference, TheRatioIsOfTheDistanceToWhatIsAllowed) {
  Case c = grpo_case(3, 4);
  c.spec.set("clip_high", 4.0);
  c.spec.set("clip_low", 0.9);
  const Outcome wrong =
      check("gradient_matches_finite_difference", fake_grpo(Flaw::slope_biased, 0.5), c);
  ASSERT_TRUE(wrong.violation);
  const Violation& v = *wrong.violation;
  const double distance = static_cast<double>(std::fabs(v.actual - v.expected));
  EXPECT_NEAR(v.error_ratio, distance / v.allowed, 1e-6 * v.error_ratio);
  EXPECT_GT(v.error_ratio, 1.0);
  EXPECT_LT(check("gradient_matches_finite_difference", fake_grpo(), c).worst_ratio, 1.0);
  c.upstream = 0.0;
  EXPECT_EQ(check("gradient_matches_finite_difference", fake_grpo(), c).reason, "no trigger");
}

TEST(FiniteDifference, AsksForNoGradientWhereTheStepIsNone) {
  Case c = grpo_case(3, 4);
  c.spec.set("clip_high", 4.0);
  c.spec.set("clip_low", 0.9);
  mask_out(c, 1, 2);
  for (const Flaw flaw : {Flaw::none, Flaw::slope_biased}) {
    auto fake = fake_grpo(flaw, 0.5);
    fake.evaluate = [made = fake.evaluate](const LossSignature& signature, const Case& given) {
      LossResult result = made(signature, given);
      if (!result.refusal) result.outputs.back().tensor.set(6, HUGE_VAL);
      return result;
    };
    EXPECT_EQ(check("gradient_matches_finite_difference", fake, c).verdict,
              flaw == Flaw::none ? Verdict::held : Verdict::violated);
  }
}

TEST(FiniteDifference, LeavesAnInfinityWhereItIs) {
  Case c = grpo_case(3, 4);
  c.spec.set("clip_high", 4.0);
  c.spec.set("clip_low", 0.9);
  put(c, "log_prob", 1, 2, -HUGE_VAL);
  const auto verdict = [&](Flaw flaw) {
    return check("gradient_matches_finite_difference", fake_grpo(flaw, 0.5), c).verdict;
  };
  EXPECT_EQ(verdict(Flaw::none), Verdict::held);
  EXPECT_EQ(verdict(Flaw::slope_biased), Verdict::violated);
}

TEST(ZeroAdvantage, LeavesNoFiniteGradientEither) {
  auto fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    Tensor& gradient = result.outputs.back().tensor;
    for (const std::int64_t at : {4, 5}) {
      if (c.batch.at("advantage").at(at) == 0.0) gradient.set(at, 1e-20);
    }
    return result;
  };
  const Outcome outcome = check("zero_advantage_zero_gradient", fake, grpo_case(2, 3));
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->place.index, 4) << "the first";
  EXPECT_EQ(outcome.violation->expected, 0.0L);
  EXPECT_EQ(outcome.violation->cause, "gradient without an advantage");
}

/// The loss with per-token values declared to lie in the range of k3 (A = 0), which includes 0.
const reference::Loss& bounded_grpo() {
  static const reference::Loss loss = [] {
    reference::Loss made = grpo();
    made.signature.outputs[0].range = [](const Case&) {
      return std::optional(std::pair(0.0, 10.0 * 0.04));
    };
    return made;
  }();
  return loss;
}

Outcome bounds_of_kl(Flaw flaw, double amount, double kl_input) {
  Case c = grpo_case(1, 2);
  for (std::int64_t t = 0; t < 2; ++t) {
    put(c, "advantage", 0, t, 0.0);
    put(c, "ref_log_prob", 0, t, get(c, "log_prob", 0, t) + kl_input);
  }
  CaseStudy study(bounded_grpo(), c);
  const auto fake = fake_grpo(flaw, amount);
  Evaluation evaluation(study, fake);
  return find_property("bounds_hold")->check(evaluation);
}

TEST(BoundsHold, FindsANegativeDivergence) {
  for (double kl_input : {0.0, 1e-3, 20.0, -20.0}) {  // at the output's clamp, too
    EXPECT_EQ(bounds_of_kl(Flaw::none, 0, kl_input).verdict, Verdict::held) << kl_input;
  }
  const Outcome negative = bounds_of_kl(Flaw::kl_biased, -1e-3, 1e-3);
  ASSERT_TRUE(negative.violation);
  EXPECT_EQ(negative.violation->cause, "cancellation");
  EXPECT_EQ(negative.violation->place.index, 0) << "the first";
  EXPECT_GT(negative.violation->allowed, 0.0);
  EXPECT_EQ(negative.violation->error_ratio,
            -negative.violation->actual / negative.violation->allowed);
}

TEST(Calls, OfTheCorePropertiesAreAtMostNineteenAndFourThatAreRefused) {
  Case c = grpo_case(3, 4);
  mask_out(c, 0, 3);
  c.split = {.world = 2, .parts = {{0, {0}}, {1, {1, 2}}}};
  CaseStudy study(grpo(), c);
  const auto fake = fake_grpo();
  Evaluation evaluation(study, fake);
  for (const Property& property : catalog()) {
    if (property.tier == Tier::core) property.check(evaluation);
  }
  EXPECT_LE(evaluation.calls(), 23);
  EXPECT_GE(evaluation.calls(), 21);  // and the case did need them
}

/// What every property says, in the catalog's order, of a loss that multiplies by its mask where
/// exp overflows behind it; `option` lets it.
std::pair<std::vector<Outcome>, std::vector<Outcome>> with_precedence_and_without(
    void (*option)(Case&)) {
  Case c = grpo_case(2, 3);
  mask_out(c, 0, 2);
  option(c);
  put_log_ratio(c, 0, 2, 89.0);
  CaseStudy study(grpo(), c);
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  Evaluation evaluation(study, fake);
  std::vector<const Property*> all;
  for (const Property& property : catalog()) all.push_back(&property);
  auto with = check_all(evaluation, all, true);
  return {std::move(with), check_all(evaluation, all, false)};
}

TEST(RuleE2, OneNanIsOneFinding) {
  const auto [with, without] = with_precedence_and_without(overflowing_mask);
  const auto at = static_cast<std::size_t>(find_property("reference_agreement") - &catalog()[0]);
  EXPECT_EQ(with[at].verdict, Verdict::skipped);
  EXPECT_EQ(with[at].reason, "not finite");
  EXPECT_EQ(without[at].verdict, Verdict::violated);
}

TEST(RuleE2, WhatIsNotFiniteIsAskedForAllThatComparesNoNumbers) {
  const auto [with, without] = with_precedence_and_without(unclamped);
  for (std::size_t i = 0; i < with.size(); ++i) {
    const Property& property = catalog()[i];
    const Precedence rank = property.precedence;
    const bool compares = rank == Precedence::formula || rank == Precedence::yields;
    EXPECT_EQ(with[i].reason, compares ? "not finite" : without[i].reason) << property.name;
    if (!compares) EXPECT_EQ(with[i].verdict, without[i].verdict) << property.name;
  }
}

TEST(RuleE2, WhatIsNotTheFormulaIsAskedForNoMoreThanThat) {
  const auto reasons = [](const impl::Implementation& fake, bool precedence = true) {
    CaseStudy study(grpo(), grpo_case(2, 3));
    Evaluation evaluation(study, fake);
    std::vector<const Property*> all;
    for (const Property& property : catalog()) all.push_back(&property);
    std::set<std::string> found;
    for (const Outcome& outcome : check_all(evaluation, all, precedence)) {
      if (outcome.verdict == Verdict::skipped) found.insert(outcome.reason);
    }
    return found;
  };
  EXPECT_EQ(reasons(fake_grpo(Flaw::value_biased, 0.1)),
            std::set<std::string>{"disagrees with the formula already"});
  EXPECT_TRUE(reasons(fake_grpo(Flaw::value_biased, 0.1), false).empty());
  EXPECT_TRUE(reasons(fake_grpo(Flaw::order_varies)).empty());
  EXPECT_TRUE(reasons(fake_grpo(Flaw::invalid_accepted)).empty());
}

/// What an implementation with that contract is told beforehand, and what it is asked.
struct Heard {
  explicit Heard(const impl::Contract& contract) {
    Case c = grpo_case(3, 4);
    mask_out(c, 0, 3);
    c.split = {.world = 2, .parts = {{0, {0}}, {1, {1, 2}}}};
    CaseStudy study(grpo(), c);
    auto fake = fake_grpo();
    fake.contract = contract;
    fake.foresee = [&](const LossSignature&, const std::vector<const Case*>& cases) {
      for (const Case* each : cases) told.push_back(*each);
    };
    fake.evaluate = [&, whole = fake.evaluate](const LossSignature& signature, const Case& each) {
      asked.push_back(each);
      return whole(signature, each);
    };
    Evaluation evaluation(study, fake);
    std::vector<const Property*> all;
    for (const Property& property : catalog()) all.push_back(&property);
    check_all(evaluation, all, true);
  }

  static bool among(const std::vector<Case>& cases, const Case& one) {
    return std::ranges::any_of(cases, [&](const Case& other) {
      return other.batch == one.batch && other.shape == one.shape && other.spec == one.spec &&
             other.split == one.split && other.grad_mode == one.grad_mode &&
             other.history == one.history;
    });
  }

  std::vector<Case> told, asked;
};

TEST(CheckAll, TellsBeforehandWhatItWillAskAbout) {
  const Heard heard(fake_grpo().contract);
  EXPECT_EQ(heard.told.size(), 18);  // as many as the table names
  for (const Case& each : heard.told) EXPECT_TRUE(Heard::among(heard.asked, each)) << "in vain";
  const auto untold = [&](const Case& each) { return !Heard::among(heard.told, each); };
  // The case itself, NaN at valid places and what must be refused come unforeseen.
  EXPECT_EQ(std::ranges::count_if(heard.asked, untold), 7);
}

TEST(CheckAll, TellsNothingOfWhatAContractLeavesOut) {
  impl::Contract contract = fake_grpo().contract;
  contract.grad_modes = contract.deterministic = false;
  contract.empty = Empty::error;
  const Heard heard(contract);
  EXPECT_FALSE(heard.told.empty());
  for (const Case& each : heard.told) EXPECT_TRUE(Heard::among(heard.asked, each)) << "in vain";
}

TEST(CheckAll, SkipsWhatTheImplementationDoesNotCompute) {
  CaseStudy study(grpo(), grpo_case(2, 3));
  auto fake = fake_grpo();
  // It computes the case itself, but no batch without a valid position.
  fake.evaluate = [whole = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = whole(signature, c);
    const std::vector<bool> valid = valid_positions(signature, c);
    if (std::ranges::find(valid, true) == valid.end()) {
      result.refusal = Refusal{impl::kNotComputed, -1, -1, "no empty batch"};
    }
    return result;
  };
  Evaluation evaluation(study, fake);
  const Property* empty = find_property("empty_is_zero");
  const Outcome outcome = check_all(evaluation, {empty}, true).front();
  EXPECT_EQ(outcome.verdict, Verdict::skipped);
  EXPECT_EQ(outcome.reason, "unsupported: no empty batch");
}

TEST(Readme, ListsThePropertiesAsTheCatalogHasThem) {
  std::ifstream file(LOSSGATE_SOURCE_DIR "/properties/README.md");
  std::stringstream text;
  text << file.rdbuf();
  std::size_t from = 0;
  for (const Property& p : catalog()) {
    const std::string row = "| `" + p.name + "` | " + std::string(name(p.tier)) + " | " + p.rules +
                            " | " + p.statement + " |";
    const std::size_t at = text.str().find(row, from);
    EXPECT_NE(at, std::string::npos) << row;
    if (at != std::string::npos) from = at;
  }
  EXPECT_EQ(text.str().find("\n| `", from + 3), std::string::npos) << "a row of no property";
}

TEST(Readme, NumbersEveryRuleAtALineStart) {
  std::ifstream file(LOSSGATE_SOURCE_DIR "/properties/README.md");
  std::string line, found;
  while (std::getline(file, line)) {
    if (line.size() > 6 && line.starts_with("**") && line.substr(4, 3) == ".**") {
      found += line.substr(2, 2) + " ";
    }
  }
  EXPECT_EQ(found,
            "A1 A2 A3 A4 A5 A6 A7 B1 B2 B3 B4 B5 B6 B7 B8 B9 C1 C2 C3 C4 C5 C6 C7 C8 C9 D1 D2 "
            "D3 E1 E2 E3 E4 E5 E6 E7 E8 E9 F1 F2 F3 G1 G2 G3 ");
}

}  // namespace
}  // namespace lossgate::properties
