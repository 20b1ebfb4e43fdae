// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "properties/fake_answer.h"
#include "properties/property.h"

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

}  // namespace
}  // namespace lossgate::properties
