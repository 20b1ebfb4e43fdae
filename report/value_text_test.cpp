// SPDX-License-Identifier: Apache-2.0
#include "report/value_text.h"

#include <gtest/gtest.h>

namespace lossgate::report {
namespace {

TEST(Inputs, HaveTheMaskAsAskedWhereAPropertyMasksThePlace) {
  LossSignature signature;
  const std::vector<Axis> axes = {Axis::sequences, Axis::tokens};
  signature.fields = {{"x", Role::differentiable, Quantity::value, axes},
                      {"mask", Role::mask, Quantity::mask, axes}};
  signature.mask = "mask";
  Case c;
  c.batch.fields.emplace_back("x", Tensor::zeros(Dtype::f32, {1, 2}));
  c.batch.fields.emplace_back("mask", Tensor::zeros(Dtype::u8, {1, 2}));
  c.batch.at("mask").set(0, 1.0);
  const auto mask_at = [&](std::int64_t token, bool valid) {
    return inputs_at(signature, c,
                     {.output = "gradient.x",
                      .index = token,
                      .coordinates = {0, token},
                      .sequence = 0,
                      .token = token,
                      .valid = valid})
        .at(1);
  };
  EXPECT_EQ(mask_at(0, true), "mask 1");
  EXPECT_EQ(mask_at(0, false), "mask 0 (as asked; 1 in the case)");
  EXPECT_EQ(mask_at(1, false), "mask 0");
}

}  // namespace
}  // namespace lossgate::report
