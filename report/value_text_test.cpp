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

TEST(Options, AreAllThatALossWasToldAndWhatItsGradientWasMultipliedBy) {
  LossSignature signature;
  Case c;
  EXPECT_TRUE(options_of(signature, c).empty());
  signature.options.emplace_back().name = "beta";
  signature.options[0].standard = 0.1;
  c.spec.options = {{"beta", 0.1}, {"kind", std::string("hinge")}, {"bound", None{}}};
  EXPECT_EQ(options_of(signature, c),
            (std::vector<std::string>{"beta 0.1", "kind hinge", "bound none"}));
  signature.reductions = {Reduction::token_mean};
  c.spec.reduction = Reduction::token_mean;
  c.spec.options.resize(1);
  c.upstream = -0.5;
  EXPECT_EQ(options_of(signature, c),
            (std::vector<std::string>{"reduction token_mean", "beta 0.1", "upstream -0.5"}));
}

}  // namespace
}  // namespace lossgate::report
