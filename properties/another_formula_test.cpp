// SPDX-License-Identifier: Apache-2.0
#include "properties/another_formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

std::vector<Case> benign() {
  std::vector<Case> cases;
  for (std::int64_t tokens : {2, 3, 5, 8}) cases.push_back(grpo_case(3, tokens, Dtype::f64));
  return cases;
}

TEST(RuleE7, AFactorOrATermMakesAnotherFormula) {
  EXPECT_TRUE(computes_another_formula(grpo(), fake_grpo(Flaw::value_biased, 0.1), benign()));
  EXPECT_TRUE(computes_another_formula(grpo(), fake_grpo(Flaw::kl_biased, 0.5), benign()));
}

TEST(RuleE7, ABiasOfAThousandthOfThatAWrongGradientOrAFaultOfEdgesDoesNot) {
  for (const auto& fake :
       {fake_grpo(), fake_grpo(Flaw::value_biased, 1e-4), fake_grpo(Flaw::slope_biased, 0.5),
        fake_grpo(Flaw::signal_dead), fake_grpo(Flaw::mask_multiplied)}) {
    EXPECT_FALSE(computes_another_formula(grpo(), fake, benign()));
  }
}

TEST(RuleE7, WhatItsArithmeticMayMakeOfTheFormulaIsNoOtherOne) {
  auto fake = fake_grpo(Flaw::value_biased, 1.0 / 512);
  EXPECT_TRUE(computes_another_formula(grpo(), fake, benign()));
  fake.arithmetic = [](Dtype) { return plain_arithmetic(Dtype::bf16, "expm1(x) - x, closed"); };
  EXPECT_FALSE(computes_another_formula(grpo(), fake, benign()));
}

TEST(RuleE7, MostCasesDecide) {
  const auto biased = fake_grpo(Flaw::value_biased, 0.1);
  EXPECT_TRUE(computes_another_formula(grpo(), biased, {grpo_case(3, 2, Dtype::f64)}));
  impl::Implementation sometimes = biased;
  sometimes.evaluate = [biased](const LossSignature& signature, const Case& c) {
    const bool wrong = c.shape[Axis::tokens] > 3;
    return (wrong ? biased : fake_grpo()).evaluate(signature, c);
  };
  EXPECT_FALSE(computes_another_formula(grpo(), sometimes, benign()));  // two of four
}

TEST(RuleE7, WhatIsNotFiniteIsNoOpinionAboutTheFormula) {
  for (const double left : {HUGE_VAL, std::nan("")}) {
    impl::Implementation fails = fake_grpo(Flaw::value_biased, 0.1);
    fails.evaluate = [left, biased = fails.evaluate](const LossSignature& signature,
                                                     const Case& c) {
      LossResult result = biased(signature, c);
      for (Output& output : result.outputs) {
        if (c.shape[Axis::tokens] > 3) continue;
        for (std::int64_t i = 0; i < output.tensor.size(); ++i) output.tensor.set(i, left);
      }
      return result;
    };
    EXPECT_TRUE(computes_another_formula(grpo(), fails, benign())) << left;
  }
}

TEST(RuleE7, WhatSaysOtherwiseTheSecondTimeIsNoFormula) {
  const auto counting = [](double step) {
    return answering("grpo", nullptr,
                     [step, calls = std::make_shared<int>(0)](const Case&, LossResult& result) {
                       add_to_loss(result, 1.0 + step * (*calls)++);
                     });
  };
  EXPECT_FALSE(computes_another_formula(grpo(), counting(0.5), benign()));
  EXPECT_TRUE(computes_another_formula(grpo(), counting(1e-9), benign()));
}

TEST(RuleE7, WhereEveryNumberIsZeroNothingIsSaid) {
  std::vector<Case> cases = benign();
  for (std::size_t i = 1; i < cases.size(); ++i) {
    cases[i].spec.set("kl_penalty", 0.0);
    change_each(cases[i].batch.at("advantage"), [](double) { return 0.0; });
  }
  EXPECT_TRUE(computes_another_formula(grpo(), fake_grpo(Flaw::value_biased, 0.1), cases));
}

TEST(RuleE7, WithoutACaseThatItComputesNothingIsSaid) {
  auto fake = fake_grpo(Flaw::value_biased, 0.1);
  fake.unsupported = [](const Case&) { return std::optional<std::string>("this"); };
  EXPECT_FALSE(computes_another_formula(grpo(), fake, benign()));
  EXPECT_FALSE(computes_another_formula(grpo(), fake_grpo(Flaw::value_biased, 0.1), {}));
}

TEST(RuleE7, NonFiniteNumbersAndMaskedPositionsDoNotHangOnTheFormula) {
  const Violation finite{.place = {}, .actual = 1.0, .detail = "", .cause = ""};
  const Violation infinite{.place = {}, .actual = HUGE_VAL, .detail = "", .cause = ""};
  const auto hangs = [](std::string_view property, const Violation& violation) {
    return hangs_on_formula(*find_property(property), violation);
  };
  EXPECT_TRUE(hangs("reference_agreement", finite));
  EXPECT_TRUE(hangs("gradient_matches_finite_difference", finite));
  EXPECT_TRUE(hangs("zero_advantage_zero_gradient", finite));
  EXPECT_FALSE(hangs("zero_advantage_zero_gradient", infinite));
  EXPECT_FALSE(hangs("finite_backward", infinite));
  EXPECT_FALSE(hangs("masked_positions_inert", finite));
  for (const char* none :
       {"legal input refused", "malformed result", "gradient beyond the shift"}) {
    EXPECT_FALSE(hangs("reference_agreement", {.place = {}, .detail = "", .cause = none}));
  }
  EXPECT_FALSE(hangs("determinism", finite));
}

TEST(RuleE7, ItsDisagreementsHaveOneName) {
  Finding loss;
  loss.property = "reference_agreement";
  loss.implementation = "mine";
  loss.loss = "grpo";
  Finding gradient = loss;
  gradient.violation.place.output = "gradient.log_prob";
  gradient.fingerprint = "grpo|token_mean;dual_clip=none|mine|reference_agreement|disagrees|x";
  name_another_formula(loss, Reduction::token_mean);
  name_another_formula(gradient, Reduction::token_mean);
  EXPECT_EQ(loss.fingerprint, "grpo|token_mean|mine|reference_agreement|another formula|");
  EXPECT_EQ(loss.fingerprint, gradient.fingerprint);
}

TEST(RuleE7, WhichOtherOneItIsIsWhatAnExperimentSays) {
  const auto cause = [](const Diagnosis& diagnosis) {
    Finding finding;
    finding.property = "reference_agreement";
    finding.diagnosis = diagnosis;
    name_another_formula(finding, Reduction::token_mean);
    EXPECT_EQ(finding.violation.cause, "another formula") << "which its fingerprint has";
    EXPECT_EQ(finding.diagnosis.because, diagnosis.because);
    return finding.diagnosis.cause;
  };
  EXPECT_EQ(cause({"dead signal", 0.9, "it is 0 throughout"}), "dead signal");
  EXPECT_EQ(cause({"dead signal", 0.5, ""}), "another formula") << "no experiment spoke";
  EXPECT_EQ(cause({"disagrees with the formula", 0.5, "it is as wrong elsewhere"}),
            "another formula")
      << "which says more";
}

}  // namespace
}  // namespace lossgate::properties
