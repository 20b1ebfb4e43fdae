// SPDX-License-Identifier: Apache-2.0
#include "properties/fake_grpo.h"

#include <gtest/gtest.h>

#include <memory>

#include "properties/fake_formula.h"

namespace lossgate::properties {
namespace {

std::string_view label(Flaw flaw) { return flaw == Flaw::none ? "sound" : "flawed"; }

LossResult refuse(std::string argument) {
  LossResult result;
  result.refusal = Refusal{.argument = std::move(argument), .message = "not accepted"};
  return result;
}

LossResult evaluate(const LossSignature& signature, const Case& c, Flaw flaw, double amount,
                    int call) {
  if (flaw == Flaw::legal_refused) return refuse("advantage");
  const auto refusal = reference::expected_refusal(grpo(), c);
  if (refusal && flaw != Flaw::invalid_accepted) {
    return refuse(flaw == Flaw::argument_misnamed ? "tensor" : refusal->argument);
  }
  if (refusal) return {};
  LossResult result = float_dtype(signature, c) == Dtype::f64
                          ? Fake<double>(signature, c, flaw, amount).run()
                          : Fake<float>(signature, c, flaw, amount).run();
  Tensor& loss = result.outputs.front().tensor;
  if (flaw == Flaw::order_varies && call % 2 == 1) loss.set(0, loss.at(0) * (1.0 + 2e-7));
  if (flaw == Flaw::grad_mode_read && c.grad_mode == GradMode::none) loss.set(0, 0.0);
  if (flaw == Flaw::input_overwritten) result.mutated = {"advantage"};
  if (flaw == Flaw::setting_changed) result.changed_settings = {"torch.initial_seed() is 0"};
  if (flaw == Flaw::output_missing) result.outputs.erase(result.outputs.begin() + 1);
  if (flaw == Flaw::dtype_changed) {
    result.outputs.back().tensor = Tensor::zeros(Dtype::i64, c.shape.of(signature.fields[0].axes));
  }
  return result;
}

}  // namespace

const reference::Loss& grpo() { return *reference::find_loss("grpo"); }

impl::Implementation fake_grpo(Flaw flaw, double amount) {
  impl::Implementation fake;
  fake.name = label(flaw);
  fake.loss = "grpo";
  fake.autograd = true;
  if (flaw != Flaw::none) fake.fault.emplace();
  fake.arithmetic = [](Dtype stored) {
    const Dtype compute = stored == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    Arithmetic arithmetic = plain_arithmetic(compute, "expm1(x) - x, closed");
    arithmetic.sum.order = SumOrder::sequential;
    return arithmetic;
  };
  fake.evaluate = [flaw, amount, calls = std::make_shared<int>(0)](const LossSignature& signature,
                                                                   const Case& c) {
    return evaluate(signature, c, flaw, amount, (*calls)++);
  };
  return fake;
}

Outcome check(std::string_view property, const impl::Implementation& implementation,
              const Case& c) {
  CaseStudy study(grpo(), c);
  Evaluation evaluation(study, implementation);
  return find_property(property)->check(evaluation);
}

TEST(FakeGrpo, HoldsEveryPropertyOnBenignCases) {
  for (const Property& property : catalog()) {
    for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
      Case c = grpo_case(3, 4, dtype);
      mask_out(c, 0, 3);
      mask_out(c, 2, 2);
      mask_out(c, 2, 3);
      c.split = {.world = 2, .parts = {{0, {0, 2}}, {1, {1}}, {1, {}}}};
      const Outcome outcome = check(property.name, fake_grpo(), c);
      EXPECT_FALSE(outcome.violation)
          << property.name << " in " << name(dtype) << ": " << outcome.violation->detail;
      const bool asked = property.name != "path_parity" && property.name != "bounds_hold";
      EXPECT_EQ(outcome.verdict, asked ? Verdict::held : Verdict::vacuous)
          << property.name << " in " << name(dtype) << ": " << outcome.reason;
    }
  }
}

TEST(FakeGrpo, GivesTheHandWorkedLossOfOneToken) {
  Case c = grpo_case(1, 1, Dtype::f64);
  put(c, "log_prob", 0, 0, -1.0);
  put(c, "old_log_prob", 0, 0, -1.0 - std::log(1.1));
  put(c, "ref_log_prob", 0, 0, -1.0);
  put(c, "advantage", 0, 0, 2.0);
  const LossResult result = fake_grpo().evaluate(grpo().signature, c);
  EXPECT_NEAR(result.find("loss")->at(0), -2.2, 1e-15);
  EXPECT_NEAR(result.find("gradient.log_prob")->at(0), -2.2, 1e-15);
}

}  // namespace lossgate::properties
