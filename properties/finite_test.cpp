// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/given_loss.h"
#include "properties/property.h"
#include "reference/given_case.h"

namespace lossgate::properties {
namespace {

/// Two equal logits far from 0, under a weight that makes nearly the largest gradient of f16.
Case steep_case() {
  Case c = ordinary_case("log_prob", Dtype::f16);
  for (const auto& [axis, extent] :
       {std::pair(Axis::sequences, 1), std::pair(Axis::tokens, 1), std::pair(Axis::vocab, 2)}) {
    c.shape[axis] = extent;
  }
  const LossSignature& signature = *reference::find_signature("log_prob");
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    tensor = Tensor::zeros(tensor.dtype, c.shape.of(field.axes));
  }
  change_each(c.batch.at("logits"), [](double) { return 60'000.0; });
  c.batch.at("log_prob_weight").set(0, max_finite(Dtype::f16));
  c.upstream = 2.0 * 0.999;
  return c;
}

TEST(RuleC1, WhatTheDeclaredFormMayCarryBeyondTheRangeNeedNotBeFinite) {
  const auto verdict = [](const std::string& form) {
    auto fake = answering("log_prob", nullptr, [](const Case&, LossResult& result) {
      change_each(output(result, "gradient.logits"),
                  [](double slope) { return std::copysign(HUGE_VAL, slope); });
    });
    fake.arithmetic = [form](Dtype) { return plain_arithmetic(Dtype::f32, form); };
    const Case c = steep_case();
    CaseStudy study(*reference::find_loss("log_prob"), c);
    Evaluation evaluation(study, fake);
    return find_property("finite_backward")->check(evaluation).verdict;
  };
  const auto& forms = reference::find_signature("log_prob")->forms;
  EXPECT_EQ(verdict(forms.front()), Verdict::violated) << "the stable one";
  EXPECT_EQ(verdict(forms.back()), Verdict::vacuous) << "as rounding may have it";
}

TEST(RuleC1, WhatTheDeclaredFormMultipliesOnTheWayNeedNotFit) {
  const reference::Loss& loss = *reference::find_loss("entropy_bonus");
  const auto verdict = [&](const std::string& form, double upstream) {
    auto fake = answering("entropy_bonus", nullptr, [](const Case&, LossResult& result) {
      change_each(output(result, "gradient.logits"), [](double) { return std::nan(""); });
    });
    fake.arithmetic = [form](Dtype) { return plain_arithmetic(Dtype::f32, form); };
    Case c = reference::zero_case(loss.signature, 1, 1, 1);
    c.batch.at("logits").set(0, 1e36);
    c.batch.at("mask").set(0, 1.0);
    c.upstream = upstream;
    CaseStudy study(loss, c);
    Evaluation evaluation(study, fake);
    return find_property("finite_backward")->check(evaluation).verdict;
  };
  const auto& forms = loss.signature.forms;
  EXPECT_EQ(verdict(forms.front(), 65536.0), Verdict::violated) << "the stable one";
  EXPECT_EQ(verdict(forms.back(), 65536.0), Verdict::vacuous) << "logits times the upstream";
  EXPECT_EQ(verdict(forms.back(), 1.0), Verdict::violated) << "these fit";
}

TEST(RuleC1, WhatHasNoBoundInTheDeclaredFormIsFiniteWhereTheStableOneIs) {
  const reference::Loss& loss = *reference::find_loss("orpo");
  const auto verdict = [&](const std::string& form, double chosen, double rejected) {
    auto fake = answering("orpo", nullptr, [](const Case&, LossResult& result) {
      for (const char* name : {"gradient.chosen_log_prob", "gradient.rejected_log_prob"}) {
        output(result, name).set(0, std::nan(""));
      }
    });
    fake.arithmetic = [form](Dtype) { return plain_arithmetic(Dtype::f32, form); };
    Case c = ordinary_case("orpo", Dtype::f32);
    c.batch.at("chosen_log_prob").set(0, chosen);
    c.batch.at("rejected_log_prob").set(0, rejected);
    CaseStudy study(loss, c);
    Evaluation evaluation(study, fake);
    return find_property("finite_backward")->check(evaluation).verdict;
  };
  for (const std::string form : {"", "log(-expm1(x))", "log1p(-exp(x))"}) {
    EXPECT_EQ(verdict(form, -1e-8, -2.0), Verdict::violated) << form << ": exp rounds to 1";
    EXPECT_EQ(verdict(form, -2.0, -1e-8), Verdict::violated) << form;
    EXPECT_EQ(verdict(form, 0.0, -2.0), Verdict::violated) << form << ": certain";
    EXPECT_EQ(verdict(form, -2.0, 0.0), Verdict::held) << form << ": an infinite term";
  }
}

/// Whose every value overflows f32, and whose gradient is 0.
reference::Loss overflowing() {
  reference::Loss loss = grpo();
  loss.evaluate = [](const reference::Inputs<reference::Tracked>& in,
                     const reference::Outputs<reference::Tracked>& out) {
    const auto value = out.writer("per_token"), slope = out.gradient("log_prob");
    out.writer("loss")(near(1.0L));
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) value(near(1e39L), s, t), slope({}, s, t);
    }
  };
  return loss;
}

TEST(RuleC1, AZeroUpstreamExcusesNanBehindAnOverflowAndNoInfinity) {
  const reference::Loss loss = overflowing();
  const auto verdict = [&](double upstream, double slope) {
    impl::Implementation fake = fake_grpo();
    fake.evaluate = [=, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
      LossResult result = sound(signature, c);
      output(result, "gradient.log_prob").set(0, slope);
      return result;
    };
    Case c = grpo_case(1, 2);
    c.upstream = upstream;
    CaseStudy study(loss, c);
    Evaluation evaluation(study, fake);
    return find_property("finite_backward")->check(evaluation).verdict;
  };
  EXPECT_EQ(verdict(0.0, std::nan("")), Verdict::held);
  EXPECT_EQ(verdict(0.0, HUGE_VAL), Verdict::violated);
  EXPECT_EQ(verdict(0.0, -HUGE_VAL), Verdict::violated);
  EXPECT_EQ(verdict(1.0, std::nan("")), Verdict::violated);
}

}  // namespace
}  // namespace lossgate::properties
