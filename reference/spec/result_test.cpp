// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/result.h"

#include <gtest/gtest.h>

namespace lossgate {
namespace {

LossSignature signature() {
  LossSignature s;
  s.fields = {{.name = "logits",
               .role = Role::differentiable,
               .axes = {Axis::sequences, Axis::tokens, Axis::vocab}},
              {.name = "teacher", .role = Role::constant, .axes = {Axis::sequences}},
              {.name = "weight", .role = Role::differentiable, .axes = {Axis::vocab}}};
  s.outputs = {{.name = "per_token", .axes = {Axis::sequences, Axis::tokens}},
               {.name = "selected", .axes = {Axis::sequences}, .dtypes = {Dtype::boolean}}};
  return s;
}

Case case_in(Dtype dtype, Reduction reduction) {
  Case c;
  c.spec.reduction = reduction;
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 3;
  c.shape[Axis::vocab] = 5;
  for (const Field& field : signature().fields) {
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  return c;
}

TEST(OutputsOf, AreLossThenValuesThenGradients) {
  const auto outputs = outputs_of(signature(), case_in(Dtype::bf16, Reduction::sum));
  ASSERT_EQ(outputs.size(), 5u);
  EXPECT_EQ(outputs[0].name, "loss");
  EXPECT_EQ(outputs[0].kind, OutputKind::loss);
  EXPECT_EQ(outputs[0].extents, Extents());
  EXPECT_EQ(outputs[1].name, "per_token");
  EXPECT_EQ(outputs[1].kind, OutputKind::value);
  EXPECT_EQ(outputs[1].extents, (Extents{2, 3}));
  EXPECT_EQ(outputs[2].dtype, Dtype::boolean);
  EXPECT_EQ(outputs[3].name, "gradient.logits");
  EXPECT_EQ(outputs[3].kind, OutputKind::gradient);
  EXPECT_EQ(outputs[3].field, "logits");
  EXPECT_EQ(outputs[3].extents, (Extents{2, 3, 5}));
  EXPECT_EQ(outputs[4].name, "gradient.weight");
}

TEST(OutputsOf, HaveNoLossWithoutAReduction) {
  const auto outputs = outputs_of(signature(), case_in(Dtype::f32, Reduction::none));
  EXPECT_EQ(outputs.front().name, "per_token");
}

/// A value in 16 bits would hide what the loss did in 32; a gradient belongs to its field.
TEST(OutputsOf, WidenHalfPrecisionValuesButNotGradients) {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const auto outputs = outputs_of(signature(), case_in(dtype, Reduction::sum));
    EXPECT_EQ(outputs[0].dtype, Dtype::f32);
    EXPECT_EQ(outputs[1].dtype, Dtype::f32);
    EXPECT_EQ(outputs[3].dtype, dtype);
  }
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
    for (std::size_t i : {0, 1, 3}) {
      EXPECT_EQ(outputs_of(signature(), case_in(dtype, Reduction::sum))[i].dtype, dtype);
    }
  }
}

TEST(Refusal, IsOfNoPlaceUnlessItSays) {
  EXPECT_EQ(Refusal{}.sequence, -1);
  EXPECT_EQ(Refusal{}.token, -1);
}

TEST(LossResult, FindsOutputsByName) {
  LossResult result;
  result.outputs.push_back({"loss", Tensor::zeros(Dtype::f32, {})});
  EXPECT_EQ(result.find("loss"), &result.outputs[0].tensor);
  EXPECT_EQ(result.find("gradient.logits"), nullptr);
}

}  // namespace
}  // namespace lossgate
