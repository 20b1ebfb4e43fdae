// SPDX-License-Identifier: Apache-2.0
// What a formula has in place of a field of which its callers have none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

struct Values final : Sink<Tracked> {
  Values(const Loss& loss, const Case& c) : problem(loss.signature, c) {
    evaluate(loss, problem, plain_arithmetic(Dtype::f32, ""), *this);
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& x) override {
    of_entry[{output, index}] = static_cast<double>(x.v);
    if (output == 0) largest_on_the_way = x.peak;
  }
  Problem problem;
  std::map<std::pair<std::size_t, std::int64_t>, double> of_entry;
  double largest_on_the_way = 0.0;  ///< to the loss
};

Loss without(Loss loss, const std::string& field) {
  std::ranges::find(loss.signature.fields, field, &Field::name)->absent = true;
  return loss;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(StandIn, IsReadAsAConstantInPlaceOfAFieldThatCallersHaveNoneOf) {
  std::vector<std::string> asked;
  for (const Loss& loss : catalog()) {
    for (const Field& field : loss.signature.fields) {
      if (!loss.signature.find_field(field.stand_in)) continue;
      asked.push_back(loss.signature.id);
      SmallCases cases(loss.signature, 5);
      for (int i = 0; i < 200; ++i) {
        Case on_policy = cases.draw(Dtype::f32);
        if (expected_refusal(loss, on_policy)) continue;
        if (i % 3 > 0) on_policy.batch.at(field.stand_in).set(0, i % 3 > 1 ? NAN : -HUGE_VAL);
        on_policy.batch.at(field.name) = on_policy.batch.at(field.stand_in);
        Case absent = on_policy;
        absent.batch.at(field.name) =
            Tensor::zeros(Dtype::f32, on_policy.batch.at(field.name).extents);
        const Values expected(loss, on_policy), found(without(loss, field.name), absent);
        ASSERT_EQ(found.of_entry.size(), expected.of_entry.size());
        for (const auto& [at, value] : expected.of_entry) {
          EXPECT_TRUE(same(found.of_entry.at(at), value)) << loss.signature.id << " " << i;
        }
      }
    }
  }
  EXPECT_EQ(asked, (std::vector<std::string>{"grpo", "cispo", "dppo", "sapo", "vespo", "gmpo",
                                             "kl_penalty", "value_clip"}));
}

TEST(StandIn, OfAWeightIsOne) {
  const Loss& loss = *find_loss("reinforce");
  const Loss unweighted = without(loss, "importance_weight");
  SmallCases cases(loss.signature, 6);
  for (int i = 0; i < 200; ++i) {
    Case ones = cases.draw(Dtype::f32);
    if (expected_refusal(loss, ones)) continue;
    if (i % 3 > 0) ones.batch.at("log_prob").set(0, i % 3 > 1 ? NAN : -HUGE_VAL);
    Case absent = ones;
    Tensor& weight = ones.batch.at("importance_weight");
    absent.batch.at("importance_weight") = Tensor::zeros(Dtype::f32, weight.extents);
    for (std::int64_t at = 0; at < weight.size(); ++at) weight.set(at, 1.0);
    const Values expected(loss, ones), found(unweighted, absent);
    ASSERT_EQ(found.of_entry.size(), expected.of_entry.size());
    for (const auto& [at, value] : expected.of_entry) {
      EXPECT_TRUE(same(found.of_entry.at(at), value)) << i;
    }
  }
}

/// Two tokens with advantages of 2 and -3, whose logits are all 0.
Case of_an_output_layer(const Loss& loss) {
  Case c;
  c.spec = standard_spec(loss.signature);
  c.shape[Axis::sequences] = 1;
  c.shape[Axis::tokens] = c.shape[Axis::hidden] = 2;
  c.shape[Axis::vocab] = 3;
  for (const Field& field : loss.signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  c.spec.set("kl_penalty", 0.0);
  c.spec.reduction = Reduction::sum;
  c.batch.at("advantage").set(0, 2.0);
  c.batch.at("advantage").set(1, -3.0);
  return c;
}

TEST(StandIn, OfLogProbsThatALossMakesItselfLeavesAWeightOfOne) {
  const Loss loss = without(*find_loss("linear_grpo"), "old_log_prob");
  Case c = of_an_output_layer(loss);
  for (const char* level : {"token", "sequence"}) {
    c.spec.set("level", std::string(level));
    ASSERT_FALSE(expected_refusal(loss, c)) << expected_refusal(loss, c)->message;
    const Values values(loss, c);
    EXPECT_EQ(values.of_entry.at({0, 0}), 1.0) << level;  // -2 + 3
  }
}

TEST(StandIn, OfLogProbsThatAreNoNumberLeavesNone) {
  const Loss loss = without(*find_loss("linear_grpo"), "old_log_prob");
  for (const char* level : {"token", "sequence"}) {
    Case c = of_an_output_layer(loss);
    c.spec.set("level", std::string(level));
    c.batch.at("weight").set(0, 1.0);
    c.batch.at("hidden").set(0, NAN);
    EXPECT_TRUE(std::isnan(Values(loss, c).of_entry.at({0, 0}))) << level;
    c.batch.at("hidden").set(0, 3e38);  // logits that overflow in f32
    c.batch.at("weight").set(0, 3e38);
    EXPECT_GT(Values(loss, c).largest_on_the_way, max_finite(Dtype::f32)) << level;
  }
}

}  // namespace
}  // namespace lossgate::reference
