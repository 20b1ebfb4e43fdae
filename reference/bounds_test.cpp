// SPDX-License-Identifier: Apache-2.0
// What the signatures promise of their outputs and forms, of small cases of every loss.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reference/given_case.h"
#include "reference/given_one_token.h"
#include "reference/reference.h"
#include "reference/rows.h"

namespace lossgate::reference {
namespace {

struct Kept final : Sink<Tracked> {
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    values[{output, index}] = value;
  }
  std::map<std::pair<std::size_t, std::int64_t>, Tracked> values;
};

auto values_of(const Loss& loss, const Problem& problem, Dtype compute, const std::string& form) {
  Kept kept;
  evaluate(loss, problem, plain_arithmetic(compute, form), kept);
  return kept.values;
}

template <class Check>
void for_small_cases(const Loss& loss, int count, Check&& check) {
  SmallCases cases(loss.signature, 11);
  for (int i = 0; i < count; ++i) {
    const Case c = cases.draw(Dtype::f64);
    if (!expected_refusal(loss, c)) check(c, Problem(loss.signature, c));
  }
}

TEST(Ranges, HoldWhatTheFormulaGivesAndNoMore) {
  std::map<std::string, double> largest;  // shares of what the ranges leave
  for (const Loss& loss : catalog()) {
    for_small_cases(loss, 200, [&](const Case&, const Problem& problem) {
      const std::string form = loss.signature.forms.empty() ? "" : loss.signature.forms.front();
      for (const auto& [at, x] : values_of(loss, problem, Dtype::f64, form)) {
        const OutputInfo& output = problem.outputs[at.first];
        if (!output.range || !std::isfinite(x.err)) continue;
        const auto [low, high] = *output.range;
        const auto value = static_cast<double>(x.v);
        EXPECT_GE(value, low - x.err - x.half) << loss.signature.id;
        EXPECT_LE(value, high + x.err + x.half) << loss.signature.id;
        double& share = largest[loss.signature.id + "." + output.name];
        if (std::isfinite(low + high)) share = std::max(share, (value - low) / (high - low));
      }
    });
  }
  // One token of two, each as likely as the other, has the largest entropy.
  EXPECT_GT(largest.at("log_prob.entropy"), 0.9);
  EXPECT_TRUE(largest.contains("kl_penalty.per_token"));
}

TEST(Ranges, OfAKlEstimateIsNoneWhereItMayBeNegative) {
  const LossSignature& signature = *find_signature("kl_penalty");
  Case c = SmallCases(signature, 1).draw(Dtype::f64);
  for (const std::string kind : {"k1", "k2", "k3"}) {
    c.spec.set("kl_estimator", kind);
    const auto outputs = outputs_of(signature, c);
    EXPECT_EQ(outputs.at(1).range.has_value(), kind != "k1") << outputs.at(1).name;
  }
}

TEST(Ranges, OfAnEntropyBonusEndsAtZeroAndAtTheLogarithmOfTheVocabulary) {
  const LossSignature& signature = *find_signature("entropy_bonus");
  Case c = SmallCases(signature, 1).draw(Dtype::f64);
  c.spec.set("coefficient", 0.25);
  const auto range = outputs_of(signature, c).at(1).range;
  ASSERT_TRUE(range);
  EXPECT_DOUBLE_EQ(range->first, -0.25 * std::log(c.shape[Axis::vocab]));
  EXPECT_EQ(range->second, 0.0);
}

/// f32's arithmetic with one stage in bf16, and f64's with nothing else to lose.
Arithmetic with_coarse(Stage stage) {
  Arithmetic coarse = plain_arithmetic(Dtype::f32, "");
  coarse.stage(stage) = {unit_roundoff(Dtype::bf16), min_subnormal(Dtype::bf16)};
  return coarse;
}
Arithmetic with_coarse_alone(Stage stage, const std::string& form) {
  Arithmetic coarse = plain_arithmetic(Dtype::f64, form);
  coarse.stage(stage) = {unit_roundoff(Dtype::bf16), min_subnormal(Dtype::f64)};
  return coarse;
}

/// How many entries of each output were charged that stage, of those that are `wanted`.
using Charged = std::map<std::string, std::int64_t>;
void expect_charged(const Loss& loss, const Arithmetic& coarse,
                    const std::function<bool(const OutputInfo&)>& wanted, Charged& charged) {
  for_small_cases(loss, 40, [&](const Case&, const Problem& problem) {
    Kept kept;
    evaluate(loss, problem, coarse, kept);
    for (const auto& [at, x] : kept.values) {
      const OutputInfo& output = problem.outputs[at.first];
      const double size = std::fabs(static_cast<double>(x.v));
      if (!wanted(output) || !(size > 0.0 && size < HUGE_VAL)) continue;
      const std::string name = loss.signature.id + "." + output.name;
      EXPECT_GE(x.err, 0.99 * unit_roundoff(Dtype::bf16) * size) << name;
      ++charged[name];
    }
  });
}

TEST(Stores, OfTermsReachTheLossAndEveryGradient) {
  Charged charged;
  for (const Loss& loss : catalog()) {
    const auto& outputs = loss.signature.outputs;
    if (outputs.empty() || !outputs.front().name.starts_with("per_")) continue;
    expect_charged(
        loss, with_coarse_alone(Stage::per_token, ""), [](const OutputInfo&) { return true; },
        charged);
  }
  EXPECT_GT(charged.size(), 40u);
  for (const auto& [name, count] : charged) EXPECT_GT(count, 5) << name;
}

TEST(Stores, OfLogitsAndLogProbsReachWhatComesBackToThem) {
  const std::set<std::string> of_log_ratios = {"dpo", "gmpo", "grpo", "kl_penalty",
                                               "kto", "orpo", "sapo"};
  const auto is_gradient = [](const OutputInfo& output) {
    return output.kind == OutputKind::gradient;
  };
  Charged charged;
  for (const Loss& loss : catalog()) {
    const auto& forms = loss.signature.forms;
    const bool rows = loss.signature.has_axis(Axis::vocab);
    const bool ratios = of_log_ratios.contains(loss.signature.id);
    for (const Stage stage : {Stage::logits, Stage::log_prob}) {
      if (!rows && (stage == Stage::logits || !ratios)) continue;
      for (const bool declared : {false, true}) {
        const std::string form = declared && !forms.empty() ? forms.front() : "";
        expect_charged(loss, with_coarse_alone(stage, form), is_gradient, charged);
      }
    }
  }
  EXPECT_GT(charged.size(), 5u);
  for (const auto& [name, count] : charged) EXPECT_GT(count, 5) << name;
}

/// One token of a KL estimate k1, whose slope is that of its importance weight, turned round.
Case weighted_kl() {
  Case c = zero_case(*find_signature("kl_penalty"), 1, 1);
  c.spec.set("kl_estimator", std::string("k1"));
  c.spec.set("kl_weighted", 1.0);
  for (const char* field : {"log_prob", "old_log_prob"}) c.batch.at(field).set(0, -1.0);
  c.batch.at("mask").set(0, 1.0);
  return c;
}

/// One token on policy, whose slope is -1 and that of the penalty, k1, as much as that is.
Case penalised(double kl_penalty) {
  Case c = zero_case(*find_signature("grpo"), 1, 1);
  c.spec.set("kl_estimator", std::string("k1"));
  c.spec.set("kl_penalty", kl_penalty);
  for (const char* field : {"mask", "advantage"}) c.batch.at(field).set(0, 1.0);
  return c;
}

TEST(Stores, OfLogRatiosLoseOfWhatComesBackToEachThoughItCancels) {
  const Arithmetic coarse = with_coarse(Stage::log_prob);
  const double u = unit_roundoff(Dtype::bf16);
  EXPECT_EQ(OneToken(weighted_kl(), coarse).gradient.v, 0.0L);
  // Of the estimate, by which the weight's slope is scaled, and of both slopes.
  EXPECT_GE(OneToken(weighted_kl(), coarse).gradient.err, 2.97 * u);
  for (const char* level : {"token", "sequence"}) {
    Case c = penalised(1.0);
    c.spec.set("level", std::string(level));
    EXPECT_GE(OneToken(c, coarse).gradient.err, 1.98 * u) << level;
  }
}

TEST(Stores, OfAGradientAreOfEachUseOfAFieldThatIsWidenedForIt) {
  const Arithmetic coarse = with_coarse(Stage::gradient);
  const double u = unit_roundoff(Dtype::bf16);
  for (const double penalty : {0.0, 1.0}) {
    const OneToken answer(penalised(penalty), coarse);
    EXPECT_EQ(answer.gradient.v, penalty - 1.0L) << penalty;
    EXPECT_NEAR(answer.gradient.err, (1.0 + penalty) * u, 0.01 * u) << penalty;
  }
  EXPECT_EQ(OneToken(weighted_kl(), coarse).gradient.v, 0.0L);
  EXPECT_NEAR(OneToken(weighted_kl(), coarse).gradient.err, 2.0 * u, 0.01 * u);
}

/// One token of four that are as likely as each other, the last one taken.
Case of_four(const char* loss) {
  Case c = zero_case(*find_signature(loss), 1, 1, 4);
  c.batch.at("label").set(0, 3.0);
  return c;
}

/// The gradient by the logit of the taken token.
Tracked taken_gradient(const Case& c, const Arithmetic& arithmetic) {
  const Loss& loss = *find_loss(c.spec.loss);
  const Problem problem(loss.signature, c);
  Kept kept;
  evaluate(loss, problem, arithmetic, kept);
  return kept.values.at({problem.outputs.size() - 1, 3});
}

TEST(Stores, OfAGradientAreOfEachUseOfLogitsThatAreWidenedForIt) {
  Case cross_entropy = of_four("cross_entropy"), log_prob = of_four("log_prob");
  cross_entropy.spec.set("z_loss", 1.0);
  for (const char* weight : {"log_prob_weight", "entropy_weight"}) {
    log_prob.batch.at(weight).set(0, 1.0);
  }
  // p - 1 and 2 logsumexp(x) p; 1 - p and the slope of an entropy that is the largest.
  const std::pair<Case, std::pair<double, double>> expected[] = {
      {cross_entropy, {-0.75, 0.5 * std::log(4.0)}}, {log_prob, {0.75, 0.0}}};
  const double u = unit_roundoff(Dtype::bf16);
  for (const auto& [c, parts] : expected) {
    const auto& [one, other] = parts;
    const Tracked gradient = taken_gradient(c, with_coarse(Stage::gradient));
    EXPECT_NEAR(static_cast<double>(gradient.v), one + other, 1e-12) << c.spec.loss;
    const double stored = std::fabs(one) + std::fabs(other) + std::fabs(one + other);
    EXPECT_NEAR(gradient.err, stored * u, 0.01 * u) << c.spec.loss;
  }
}

TEST(Stores, OfALogRatioReachTheKlEstimateAndItsSlope) {
  const Arithmetic coarse = with_coarse(Stage::log_prob);
  const double u = unit_roundoff(Dtype::bf16), x = 0.5, power = std::exp(x);
  struct Estimate {
    const char* kind;
    double slope, bend;
  };
  for (const auto& [kind, slope, bend] :
       {Estimate{"k1", 1.0, 0.0}, Estimate{"k2", x, 1.0}, Estimate{"k3", power - 1.0, power}}) {
    for (const char* id : {"kl_penalty", "grpo"}) {
      SCOPED_TRACE(testing::Message() << id << ", " << kind);
      Case c = zero_case(*find_signature(id), 1, 1);
      c.spec.set("kl_estimator", std::string(kind));
      for (const char* field : {"log_prob", "old_log_prob"}) c.batch.at(field).set(0, -x);
      c.batch.at("mask").set(0, 1.0);
      if (c.spec.find("kl_penalty")) c.spec.set("kl_penalty", 1.0);
      EXPECT_GE(OneToken(c, coarse).term.err, 0.99 * u * slope * x);
      EXPECT_GE(OneToken(c, coarse).gradient.err, 0.99 * u * (bend * x + slope));
      if (!c.spec.find("kl_straight_through")) continue;
      c.spec.set("kl_straight_through", 1.0);
      EXPECT_GE(OneToken(c, coarse).gradient.err, 0.99 * u * (x + x));
    }
  }
}

TEST(RuleB7, AnUndeclaredFormIsChargedAsTheWidest) {
  std::set<std::string> wider;
  for (const Loss& loss : catalog()) {
    if (loss.signature.forms.size() < 2) continue;
    for_small_cases(loss, 60, [&](const Case&, const Problem& problem) {
      const auto widest = values_of(loss, problem, Dtype::f32, "");
      for (const std::string& form : loss.signature.forms) {
        const bool shifted = declares(form, kShiftedForm);
        for (const auto& [at, x] : values_of(loss, problem, Dtype::f32, form)) {
          const Tracked& all = widest.at(at);
          EXPECT_EQ(std::isnan(x.v), std::isnan(all.v));
          EXPECT_LE(x.err, all.err * (1.0 + 1e-12))
              << loss.signature.id << " " << form << " " << problem.outputs[at.first].name;
          if (!shifted && x.err < 0.99 * all.err) wider.insert(loss.signature.id);
        }
      }
    });
  }
  EXPECT_EQ(wider, (std::set<std::string>{"cross_entropy", "dft", "dpo", "entropy_bonus", "grpo",
                                          "kl_penalty", "kto", "jsd", "linear_cross_entropy",
                                          "linear_grpo", "linear_jsd", "log_prob", "orpo",
                                          "sparse_jsd", "vespo"}));
}

TEST(RuleB7, AnUndeclaredFormHasTheNumbersOfTheOneThatKeepsTheirDigits) {
  const Loss& loss = *find_loss("kl_penalty");
  Case c = SmallCases(loss.signature, 1).draw(Dtype::f64);
  c.spec = standard_spec(loss.signature);
  c.spec.set("kl_estimator", "k3");
  // (expm1(x) + 1) - 1 is 0 there in any format, expm1(x) is not.
  for (const auto& [field, value] :
       {std::pair("log_prob", 0.0), std::pair("ref_log_prob", 0x1p-80)}) {
    Tensor& tensor = c.batch.at(field);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
  }
  c.batch.at("mask").set(0, 1.0);
  c.upstream = 1.0;
  const Problem problem(loss.signature, c);
  const auto at = std::pair(problem.outputs.size() - 1, std::int64_t{0});
  ASSERT_EQ(problem.outputs[at.first].name, "gradient.log_prob");
  const Tracked closed = values_of(loss, problem, Dtype::f32, loss.signature.forms.front()).at(at);
  EXPECT_LT(closed.v, 0.0L);
  EXPECT_EQ(values_of(loss, problem, Dtype::f32, "").at(at).v, closed.v);
}

}  // namespace
}  // namespace lossgate::reference
