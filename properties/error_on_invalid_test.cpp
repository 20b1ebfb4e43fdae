// SPDX-License-Identifier: Apache-2.0
// Rule C7 of README.md, as far as GRPO can show it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

TEST(RuleC7, EveryKindOfInvalidInputIsRefusedByItsName) {
  std::vector<std::pair<std::string, Case>> invalid(5, {"", grpo_case(2, 3)});
  invalid[0].first = "mask", put(invalid[0].second, "mask", 1, 1, 2.0);
  invalid[1].first = "clip_low", invalid[1].second.spec.set("clip_low", -1.0);
  invalid[2].first = "reduction", invalid[2].second.spec.reduction = Reduction::none;
  invalid[3].first = "level", invalid[3].second.spec.set("level", std::string("word"));
  invalid[4].first = "advantage";
  invalid[4].second.batch.at("advantage") = Tensor::zeros(Dtype::f32, {2, 2});
  for (const auto& [argument, c] : invalid) {
    EXPECT_EQ(check("error_on_invalid", fake_grpo(), c).verdict, Verdict::held) << argument;
    const Outcome broken = check("error_on_invalid", fake_grpo(Flaw::invalid_accepted), c);
    ASSERT_EQ(broken.verdict, Verdict::violated) << argument;
    EXPECT_EQ(broken.violation->place.output, argument);
    EXPECT_EQ(check("reference_agreement", fake_grpo(), c).verdict, Verdict::skipped);
    impl::Implementation returns_nothing = fake_grpo();
    returns_nothing.evaluate = [](const LossSignature&, const Case&) {
      LossResult result;
      result.refusal = Refusal{impl::kNoResult, -1, -1, "loss returned nothing"};
      return result;
    };
    const Outcome accepted = check("error_on_invalid", returns_nothing, c);
    EXPECT_EQ(accepted.violation->cause, "invalid input accepted") << argument;
  }
}

TEST(RuleC7, NobodyRefusesWhatDoesNotReachHim) {
  Case c = grpo_case(2, 3);
  c.spec.reduction = Reduction::none;
  impl::Implementation deaf = fake_grpo(Flaw::invalid_accepted);
  EXPECT_EQ(check("error_on_invalid", deaf, c).verdict, Verdict::violated);
  deaf.hears = [](const Case&, std::string_view argument) { return argument != "reduction"; };
  EXPECT_EQ(check("error_on_invalid", deaf, c).verdict, Verdict::skipped);
  const Outcome made_so = check("error_on_invalid", deaf, grpo_case(2, 3));
  ASSERT_EQ(made_so.verdict, Verdict::violated);
  EXPECT_NE(made_so.violation->place.output, "reduction");
}

TEST(RuleC7, ARefusalMayNameWhatTheArgumentAtFaultDoesNotFit) {
  Case c = grpo_case(2, 3);
  c.batch.at("advantage") = Tensor::zeros(Dtype::f32, {2, 2});
  impl::Implementation fake = fake_grpo();
  const auto named_with = [&](std::vector<std::string> others) {
    fake.evaluate = [others](const LossSignature&, const Case&) {
      LossResult result;
      result.refusal = Refusal{"log_prob", -1, -1, "log_prob and another differ", others};
      return result;
    };
    return check("error_on_invalid", fake, c).verdict;
  };
  EXPECT_EQ(named_with({"mask", "advantage"}), Verdict::held);
  EXPECT_EQ(named_with({"mask"}), Verdict::violated);
}

TEST(RuleC7, TermsAreARightAnswerToNoReduction) {
  const auto returning = [](bool terms) {
    impl::Implementation fake = fake_grpo();
    fake.evaluate = [sound = fake.evaluate, terms](const LossSignature& signature, const Case& c) {
      if (c.spec.reduction != Reduction::none) return sound(signature, c);
      LossResult result;
      result.refusal = Refusal{impl::kNoResult, -1, -1, "a scalar is needed"};
      if (terms) result.refusal->beside = {"reduction"};
      return result;
    };
    return check("error_on_invalid", fake, grpo_case(2, 3)).verdict;
  };
  EXPECT_EQ(returning(true), Verdict::held);
  EXPECT_EQ(returning(false), Verdict::violated);
}

TEST(RuleC7, NotImplementedIsARefusal) {
  Case c = grpo_case(2, 3);
  c.spec.reduction = Reduction::none;
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [](const LossSignature&, const Case&) {
    LossResult result;
    result.refusal = Refusal{impl::kNotComputed, -1, -1, "no such reduction"};
    return result;
  };
  EXPECT_EQ(check("error_on_invalid", fake, c).verdict, Verdict::held);
}

}  // namespace
}  // namespace lossgate::properties
