// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/orpo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

/// What each variant that is wrong on purpose leaves right, in cases written by hand.
namespace lossgate::impl {
namespace {

LossSignature pair_signature() {
  const auto field = [](std::string name) {
    return Field{.name = std::move(name),
                 .role = Role::differentiable,
                 .quantity = Quantity::log_prob,
                 .axes = {Axis::sequences},
                 .infinity = Infinity::legal};
  };
  return {.id = "orpo",
          .title = "for tests",
          .formula = "as in the reference",
          .source = "none",
          .options = {{.name = "beta", .standard = 1.0, .low = 0.0, .high = 10.0}},
          .fields = {field("chosen_log_prob"), field("rejected_log_prob")},
          .outputs = {{.name = "per_pair", .axes = {Axis::sequences}}},
          .reductions = {Reduction::sum}};
}

/// Whether all that the variant answers to one pair of f32 log-probs is finite.
bool is_finite(const std::string& name, double chosen, double rejected) {
  const LossSignature signature = pair_signature();
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 1;
  for (const Field& field : signature.fields) {
    c.batch.fields.emplace_back(field.name, Tensor::zeros(Dtype::f32, c.shape.of(field.axes)));
  }
  c.batch.at("chosen_log_prob").set(0, chosen);
  c.batch.at("rejected_log_prob").set(0, rejected);
  const auto all = orpo_implementations();
  const LossResult result =
      std::ranges::find(all, name, &Implementation::name)->evaluate(signature, c);
  return std::ranges::all_of(result.outputs,
                             [](const Output& output) { return output.tensor.all_finite(); });
}

TEST(FaultyOrpo, LosesFarOddsAndNotThoseOfANearlyCertainAnswer) {
  for (const char* name : {"odds_as_quotient", "log_of_sigmoid"}) {
    EXPECT_FALSE(is_finite(name, -300.0, -1.0)) << name;
    for (const double chosen : {-1.0, -1e-8, 0.0}) {
      EXPECT_TRUE(is_finite(name, chosen, -2.0)) << name << " " << chosen;
    }
    EXPECT_TRUE(is_finite(name, -2.0, -1e-8)) << name;
  }
}

TEST(FaultyOrpo, LosesANearlyCertainAnswerAndNotFarOdds) {
  for (const char* name : {"log_of_one_less_exp", "hidden_branch"}) {
    EXPECT_FALSE(is_finite(name, -1e-8, -2.0)) << name;
    EXPECT_TRUE(is_finite(name, -300.0, -1.0)) << name;
    EXPECT_TRUE(is_finite(name, -1.0, -300.0)) << name;
  }
}

TEST(FaultyOrpo, HasASoundTwinThatLosesNothing) {
  for (const double chosen : {-300.0, -1.0, -1e-8, 0.0}) {
    for (const double rejected : {-300.0, -1.0, -1e-8}) {
      EXPECT_TRUE(is_finite("eager", chosen, rejected)) << chosen << " " << rejected;
    }
  }
}

}  // namespace
}  // namespace lossgate::impl
