// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "properties/diagnosis.h"
#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

Finding finding(std::string_view property, const impl::Implementation& implementation,
                const Case& c, bool benign = false) {
  CaseStudy study(grpo(), c);
  Evaluation evaluation(study, implementation);
  const Property& asked = *find_property(property);
  const Outcome outcome = asked.check(evaluation);
  if (!outcome.violation) return {};
  return make_finding(study, implementation, asked, *outcome.violation, benign);
}

/// Masked, unbounded, and far from the old policy.
Case masked_overflow(double log_ratio, Dtype dtype = Dtype::f32) {
  Case c = grpo_case(2, 3, dtype);
  c.spec.set("log_ratio_clamp", None{});
  put_log_ratio(c, 0, 2, log_ratio);
  put(c, "advantage", 0, 2, -1.0);
  mask_out(c, 0, 2);
  return c;
}

double reach(const Finding& finding) {
  const std::string start = "fails from log-ratio ";
  EXPECT_TRUE(finding.reach.starts_with(start)) << finding.reach;
  return finding.reach.starts_with(start) ? std::stod(finding.reach.substr(start.size())) : 0.0;
}

TEST(RuleE5, TheReachIsWhereExpOverflowsItsFormat) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  const Finding single = finding("finite_backward", fake, masked_overflow(1000.0));
  EXPECT_NEAR(reach(single), 88.72, 0.02);
  EXPECT_TRUE(single.reach.ends_with(" in f32")) << single.reach;
  const Finding other = finding("finite_backward", fake, masked_overflow(1000.0, Dtype::f64));
  EXPECT_NEAR(reach(other), 709.8, 0.05);
}

TEST(RuleE5, TheReachDoesNotDependOnHowFarTheCaseWent) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  for (double log_ratio : {89.0, 200.0, 5000.0, 3e38}) {
    EXPECT_NEAR(reach(finding("finite_backward", fake, masked_overflow(log_ratio))), 88.72, 0.02);
  }
}

TEST(RuleE5, TheReachIsTheDistanceFromTheTwinWhereverTheTokenStands) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  for (std::int64_t at = 0; at < 6; ++at) {
    Case c = grpo_case(2, 3);
    c.spec.set("log_ratio_clamp", None{});
    put_log_ratio(c, at / 3, at % 3, 400.0);
    for (const char* field : {"log_prob", "old_log_prob"}) {
      put(c, field, at / 3, at % 3, get(c, field, at / 3, at % 3) - 32.0);  // both alike
    }
    put(c, "advantage", at / 3, at % 3, -1.0);
    mask_out(c, at / 3, at % 3);
    EXPECT_NEAR(reach(finding("finite_backward", fake, c)), 88.72, 0.02) << at;
  }
}

/// A loss that is not finite from that far on, to that share of it.
void expect_reach(const impl::Implementation& fake, const Case& c, const std::string& from,
                  double limit, double share) {
  CaseStudy study(*reference::find_loss(c.spec.loss), c);
  Evaluation evaluation(study, fake);
  const Property& asked = *find_property("finite_forward");
  const auto violation = asked.check(evaluation).violation;
  ASSERT_TRUE(violation);
  const std::string reach = reach_of(study, fake, asked, *violation);
  ASSERT_TRUE(reach.starts_with(from)) << reach;
  EXPECT_NEAR(std::stod(reach.substr(from.size())), limit, share * limit);
}

TEST(RuleE5, WhatHasNoTwinIsTamedTowardsZero) {
  for (const double limit : {0.5, 20.0}) {
    const auto fake = answering("log_prob", nullptr, [limit](const Case& c, LossResult& result) {
      const Tensor& logits = c.batch.at("logits");
      for (std::int64_t i = 0; i < logits.size(); ++i) {
        if (std::fabs(logits.at(i)) >= limit) return output(result, "loss").set(0, HUGE_VAL);
      }
    });
    Case c = ordinary_case("log_prob", Dtype::f32);
    change_each(c.batch.at("logits"), [](double x) { return 50.0 * x; });
    expect_reach(fake, c, "fails from |logit| ", limit, 1e-3);
  }
}

/// Not finite where a value is that far from the old one, and another than its return.
TEST(RuleE5, TheReachIsAlongTheAxisWhereTheLeastTamingIsEnough) {
  constexpr double kLimit = 4.0;
  const auto fake = answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    const Tensor &value = c.batch.at("value"), &old = c.batch.at("old_value"),
                 &target = c.batch.at("return");
    for (std::int64_t i = 0; i < value.size(); ++i) {
      const bool far = std::fabs(value.at(i) - old.at(i)) >= kLimit;
      if (far && value.at(i) != target.at(i)) return output(result, "loss").set(0, HUGE_VAL);
    }
  });
  Case c = ordinary_case("value_clip", Dtype::f32);
  change_each(c.batch.at("old_value"), [](double x) { return x + 20.0; });
  expect_reach(fake, c, "fails from |V - old| ", kLimit, 0.1);
}

TEST(RuleE5, WithoutAnAxisThatTamesItThereIsNoReach) {
  EXPECT_EQ(
      finding("reference_agreement", fake_grpo(Flaw::value_biased, 0.1), grpo_case(2, 3)).reach,
      "");
}

TEST(Finding, ThatIsNamedAloneHasTheCauseOfItsViolationAndNoConfidence) {
  const auto fake = fake_grpo(Flaw::value_biased, 0.1);
  CaseStudy study(grpo(), grpo_case(2, 3));
  Evaluation evaluation(study, fake);
  const Property& asked = *find_property("reference_agreement");
  const auto violation = asked.check(evaluation).violation;
  ASSERT_TRUE(violation);
  const Diagnosis diagnosis = name_finding(study, fake, asked, *violation, false).diagnosis;
  EXPECT_EQ(diagnosis.cause, violation->cause);
  EXPECT_EQ(diagnosis.confidence, 0.0) << "nothing was tried";
}

TEST(RuleE5, TheGradeSaysHowEasilyItIsMet) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  Case infinite = grpo_case(2, 3);
  mask_out(infinite, 0, 2);
  put(infinite, "log_prob", 0, 2, -std::numeric_limits<double>::infinity());
  put(infinite, "advantage", 0, 2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(finding("finite_backward", fake, masked_overflow(100.0), true).grade, Grade::ordinary);
  EXPECT_EQ(finding("finite_backward", fake, masked_overflow(100.0)).grade, Grade::rare);
  EXPECT_EQ(finding("finite_forward", fake, infinite).grade, Grade::adversarial);
}

TEST(RuleE5, WhatIsNotThereAgainIsNotAdversarial) {
  const auto once =
      answering("grpo", nullptr, [calls = std::make_shared<int>(0)](const Case&, LossResult& r) {
        if ((*calls)++ == 0) add_to_loss(r, 1.0);
      });
  Case infinite = ordinary_case("grpo");
  mask_out(infinite, 0, 2);
  put(infinite, "log_prob", 0, 2, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(finding("reference_agreement", once, infinite).grade, Grade::rare);
}

TEST(RuleE5, WhatTheContractLeavesBehindTheMaskIsNotAdversarial) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  reference::Loss loss = grpo();
  Case c = grpo_case(2, 3);
  c.spec.set("log_ratio_clamp", None{});
  mask_out(c, 0, 2);
  put(c, "old_log_prob", 0, 2, -std::numeric_limits<double>::infinity());
  put(c, "advantage", 0, 2, -1.0);
  const auto grade = [&](Masked masked) {
    for (Field& field : loss.signature.fields) field.masked = masked;
    CaseStudy study(loss, c);
    Evaluation evaluation(study, fake);
    const Property& asked = *find_property("finite_backward");
    return make_finding(study, fake, asked, *asked.check(evaluation).violation, false).grade;
  };
  EXPECT_EQ(grade(Masked::anything), Grade::adversarial);
  EXPECT_EQ(grade(Masked::minus_infinity), Grade::rare);
}

TEST(RuleE6, TwoCasesOfOneFaultHaveOneFingerprint) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  Case other = masked_overflow(90.0);
  put(other, "advantage", 1, 1, 7.0);
  other.provenance.title = "another one";
  other.spec.set("clip_low", 0.3);  // a number, no choice
  const std::string one = finding("finite_backward", fake, masked_overflow(400.0)).fingerprint;
  EXPECT_EQ(one, finding("finite_backward", fake, other).fingerprint);
  EXPECT_EQ(one,
            "grpo|token_mean;log_ratio_clamp=none|flawed|finite_backward|"
            "non-finite value behind a mask|gradient.log_prob@masked");
}

TEST(RuleE6, AnOptionThatTheFaultDoesNotNeedIsNoPartOfItsName) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  Case weighted = masked_overflow(400.0);
  weighted.spec.set("kl_weighted", 1.0);
  weighted.spec.set("dual_clip", 3.0);
  EXPECT_EQ(finding("finite_backward", fake, masked_overflow(400.0)).fingerprint,
            finding("finite_backward", fake, weighted).fingerprint);
}

TEST(RuleE6, AnOptionThatTheImplementationNeedsIsPartOfItsName) {
  auto fake = fake_grpo(Flaw::mask_multiplied);
  fake.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.spec.number("kl_weighted") == 1.0) return std::nullopt;
    return "the KL term without a weight";
  };
  Case weighted = masked_overflow(400.0);
  weighted.spec.set("kl_weighted", 1.0);
  const std::string name = finding("finite_backward", fake, weighted).fingerprint;
  EXPECT_NE(name.find(";kl_weighted"), std::string::npos) << name;
}

TEST(RuleE6, AnotherOptionPropertyOrCauseIsAnotherFingerprint) {
  const auto fake = fake_grpo(Flaw::mask_multiplied);
  Case sequence = masked_overflow(400.0);
  sequence.spec.reduction = Reduction::sequence_mean;
  const std::string one = finding("finite_backward", fake, masked_overflow(400.0)).fingerprint;
  EXPECT_NE(one, finding("finite_backward", fake, sequence).fingerprint);
  EXPECT_NE(one, finding("masked_positions_inert", fake, masked_overflow(400.0)).fingerprint);
}

TEST(Finding, OfAnInvalidCaseHasNoReach) {
  Case c = grpo_case(1, 2);
  put(c, "mask", 0, 1, 2.0);
  const Finding found = finding("error_on_invalid", fake_grpo(Flaw::invalid_accepted), c);
  EXPECT_EQ(found.property, "error_on_invalid");
  EXPECT_EQ(found.reach, "");
  EXPECT_EQ(found.grade, Grade::rare);
}

}  // namespace
}  // namespace lossgate::properties
