// SPDX-License-Identifier: Apache-2.0
// Rule B7: what an implementation of a softmax may do that declares no form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reference/given_case.h"
#include "reference/given_one_token.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// The errors that gradients may have, of all outputs after one another.
struct Errors final : Sink<Tracked> {
  Errors(const Loss& loss, const Case& c, std::string_view form) : problem(loss.signature, c) {
    evaluate(loss, problem, plain_arithmetic(Dtype::f32, form), *this);
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& x) override {
    if (problem.outputs[output].kind != OutputKind::gradient) return;
    const std::size_t at = static_cast<std::size_t>(index);
    auto& errors = of_output[output];
    errors.resize(std::max(errors.size(), at + 1));
    errors[at] = x.err;
  }
  Problem problem;
  std::map<std::size_t, std::vector<double>> of_output;
};

bool of_softmax(const LossSignature& signature) {
  return std::ranges::any_of(signature.forms, [](const std::string& form) {
    return form.find("(x - max) - log S") != std::string::npos;
  });
}

TEST(RuleB7, ChargesMoreThanAnyFormWhereNoneDetachesTheMaximum) {
  std::set<std::string> charged;
  for (const Loss& loss : catalog()) {
    if (!of_softmax(loss.signature)) continue;
    SmallCases cases(loss.signature, 3);
    double declared = 0.0, undeclared = 0.0;
    for (int i = 0; i < 20; ++i) {
      const Case c = cases.draw(Dtype::f32);
      if (expected_refusal(loss, c)) continue;
      std::vector<Errors> forms;
      for (const std::string& form : loss.signature.forms) forms.emplace_back(loss, c, form);
      for (const auto& [output, errors] : Errors(loss, c, "").of_output) {
        for (std::size_t at = 0; at < errors.size(); ++at) {
          double widest = 0.0;
          for (Errors& of_form : forms) {
            widest = std::max(widest, of_form.of_output[output][at]);
          }
          if (errors[at] < HUGE_VAL) declared += widest, undeclared += errors[at];
        }
      }
    }
    EXPECT_GT(undeclared, 1.9 * declared) << loss.signature.id;
    charged.insert(loss.signature.id);
  }
  EXPECT_EQ(charged, (std::set<std::string>{"cross_entropy", "dft", "entropy_bonus", "jsd",
                                            "linear_cross_entropy", "linear_grpo", "linear_jsd",
                                            "log_prob", "sparse_jsd"}));
}

TEST(RuleB7, LosesAShareOfAJoinedNormaliserWhereNoFormIsDeclared) {
  const LossSignature& signature = *find_signature("cross_entropy");
  Case c = zero_case(signature, 1, 1, 2);
  c.spec.set("z_loss", 1.0);
  c.batch.at("logits").set(0, 100.0);
  c.batch.at("logits").set(1, 10.0);
  const auto error = [&](std::string_view form) {
    return OneToken(c, plain_arithmetic(Dtype::f32, form)).gradient.err;
  };
  // The second token's share of both parts of the gradient, 1 and 2 z logsumexp.
  const double lost = std::exp(-90.0) * (1.0 + 2.0 * 100.0);
  EXPECT_NEAR(error(""), lost, 1e-3 * lost);
  EXPECT_LT(error(signature.forms.front()), 1e-3 * lost);
}

TEST(RuleB7, TakesTheBoundOfAWeightForTheExponentialOfItsLogarithm) {
  Case c = zero_case(*find_signature("cispo"), 1, 1);
  c.spec.set("weight_low", 1e-7);
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("advantage").set(0, 1.0);
  c.batch.at("log_prob").set(0, -20.0);
  const Tracked gradient = OneToken(c, plain_arithmetic(Dtype::f32, "")).gradient;
  EXPECT_NEAR(static_cast<double>(gradient.v), -1e-7, 1e-12);
  EXPECT_GT(gradient.err, -std::log(1e-7) * unit_roundoff(Dtype::f32) * 1e-7);
}

/// The error of the first advantage.
struct FirstAdvantage final : Sink<Tracked> {
  void entry(std::size_t /*output*/, std::int64_t index, const Tracked& x) override {
    if (index == 0) err = x.err;
  }
  double err = 0.0;
};

TEST(RuleB7, TakesARewardLessAMeanForAMeanOfDifferences) {
  const Loss& loss = *find_loss("group_advantage");
  Case c = zero_case(loss.signature, 4, -1);
  c.spec.set("scale", "unscaled");
  Tensor reward = Tensor::zeros(Dtype::bf16, {4});
  constexpr double kRewards[] = {1.0078125, 13.0625, -4.96875, -5.03125};  // the first is the mean
  for (std::int64_t s = 0; s < 4; ++s) reward.set(s, kRewards[s]);
  c.batch.at("reward") = reward;
  Arithmetic arithmetic = plain_arithmetic(Dtype::bf16, "");
  arithmetic.sum.roundoff = unit_roundoff(Dtype::f32);
  FirstAdvantage first;
  evaluate(loss, Problem(loss.signature, c), arithmetic, first);
  EXPECT_GT(first.err, 6.0 * unit_roundoff(Dtype::bf16)) << "of the mean distance";
}

}  // namespace
}  // namespace lossgate::reference
