// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/linear.h"

#include <gtest/gtest.h>

#include "reference/given_numbers.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// A forward KL from hidden states: one token, two classes, one hidden dimension.
Case one_state(double hidden, double weight, double temperature, double upstream) {
  const LossSignature& signature = *find_signature("linear_jsd");
  Case c;
  c.spec = standard_spec(signature);
  c.spec.reduction = Reduction::sum;
  c.spec.set("beta", 0.0);
  c.spec.set("temperature", temperature);
  c.upstream = upstream;
  c.shape[Axis::sequences] = c.shape[Axis::tokens] = c.shape[Axis::hidden] = 1;
  c.shape[Axis::vocab] = 2;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f16 : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  c.batch.at("student_hidden").set(0, hidden);
  c.batch.at("student_weight").set(0, weight);
  c.batch.at("student_weight").set(1, -weight);
  c.batch.at("teacher_hidden").set(0, 1.0);
  c.batch.at("teacher_weight").set(0, 1.0);
  return c;
}

struct Gradients : Sink<Tracked> {
  explicit Gradients(const Case& c) : problem(find_loss("linear_jsd")->signature, c) {
    evaluate(*find_loss("linear_jsd"), problem, plain_arithmetic(Dtype::f16, ""), *this);
  }
  void entry(std::size_t output, std::int64_t /*index*/, const Tracked& x) override {
    if (problem.outputs[output].name == "gradient.student_weight") by_weight = x;
    if (problem.outputs[output].name == "gradient.student_hidden") by_hidden = x;
  }

  Problem problem;
  Tracked by_weight, by_hidden;
};

TEST(OutputLayer, HasGradientsThatATemperatureMayDivideLast) {
  // 93,275 by the divided weights, before a tenth is left of it.
  const Gradients far(one_state(8.0, 1.25, 10.0, 32768.0)),
      near(one_state(8.0, 1.25, 10.0, 8192.0)), plain(one_state(8.0, 0.125, 1.0, 2048.0));
  constexpr double kMost = 65504.0;
  EXPECT_NEAR(static_cast<double>(far.by_weight.v), -9327.55, 0.01);
  EXPECT_GT(far.by_weight.peak, kMost);
  EXPECT_LE(near.by_weight.peak, kMost);
  EXPECT_LE(plain.by_weight.peak, kMost);
  const Gradients of_hidden(one_state(1.0, 8.0, 10.0, 32768.0));
  EXPECT_LT(tracking::magnitude(of_hidden.by_hidden.v), kMost);
  EXPECT_GT(of_hidden.by_hidden.peak, kMost);
}

}  // namespace
}  // namespace lossgate::reference
