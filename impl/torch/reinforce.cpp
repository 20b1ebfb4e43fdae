// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

/// importance_weight may be undefined: 1.
std::tuple<at::Tensor, at::Tensor> reinforce(const at::Tensor& log_prob,
                                             const at::Tensor& advantage,
                                             const at::Tensor& importance_weight,
                                             const at::Tensor& mask, const ReductionPlan& plan) {
  std::vector<PositionField> fields = {{"log_prob", log_prob}, {"advantage", advantage}};
  const bool weighs = importance_weight.defined();
  if (weighs) fields.push_back({"importance_weight", importance_weight});
  return position_loss(fields, mask, plan, [weighs](const Tensors& f) {
    at::Tensor coefficient = f[1].neg();
    if (weighs) coefficient.mul_(f[2]);
    return under_coefficient(coefficient, f[0]);
  });
}

std::tuple<at::Tensor, at::Tensor> reinforce_operator(
    const at::Tensor& log_prob, const at::Tensor& advantage,
    const std::optional<at::Tensor>& importance_weight, const at::Tensor& mask,
    std::int64_t total_tokens, std::int64_t total_sequences, c10::string_view reduction,
    std::int64_t max_length) {
  return reinforce(log_prob, advantage, importance_weight.value_or(at::Tensor()), mask,
                   reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs reinforce_step(const StepInputs& in) {
  auto [loss, per_token] = reinforce(in["log_prob"], in["advantage"], in["importance_weight"],
                                     in["mask"], in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation reinforce_implementation() {
  return torch_implementation("reinforce", {"impl/torch/reinforce.cpp", kLine}, reinforce_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "reinforce(Tensor log_prob, Tensor advantage, Tensor? importance_weight, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', int max_length=16) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("reinforce", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::reinforce_operator));
}
