// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

/// Half of beta goes inside the square, which overflows only where the term does.
TermsAndSlope dro_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                        const at::Tensor& advantage, double beta) {
  const at::Tensor log_ratio = log_prob - old_log_prob;
  auto [value, slope] = under_coefficient(advantage.neg(), log_prob);
  return {(log_ratio * (0.5 * beta)).mul_(log_ratio).add_(value), log_ratio.mul(beta).add_(slope)};
}

/// The same under a weight. One of 0 decides, whatever it meets; a NaN stays.
TermsAndSlope weighted_dro_terms(const Tensors& fields, double beta) {
  const at::Tensor& weight = fields.back();
  const auto heard = [&](const at::Tensor& x) {
    return x.masked_fill((weight == 0).logical_and_(x == x), 0);
  };
  const auto [value, slope] = dro_terms(heard(fields[0]), heard(fields[1]), heard(fields[2]), beta);
  return {value * weight, slope * weight};
}

/// importance_weight may be undefined: 1.
std::tuple<at::Tensor, at::Tensor> dro(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                       const at::Tensor& advantage,
                                       const at::Tensor& importance_weight, const at::Tensor& mask,
                                       double beta, const ReductionPlan& plan) {
  TORCH_CHECK(beta > 0.0, "beta must be positive, got ", beta);
  std::vector<PositionField> fields = {
      {"log_prob", log_prob}, {"old_log_prob", old_log_prob}, {"advantage", advantage}};
  const bool weighs = importance_weight.defined();
  if (weighs) fields.push_back({"importance_weight", importance_weight});
  return position_loss(fields, mask, plan, [&](const Tensors& f) {
    return weighs ? weighted_dro_terms(f, beta) : dro_terms(f[0], f[1], f[2], beta);
  });
}

std::tuple<at::Tensor, at::Tensor> dro_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob, const at::Tensor& advantage,
    const std::optional<at::Tensor>& importance_weight, const at::Tensor& mask,
    std::int64_t total_tokens, std::int64_t total_sequences, c10::string_view reduction,
    double beta, std::int64_t max_length) {
  return dro(log_prob, old_log_prob, advantage, importance_weight.value_or(at::Tensor()), mask,
             beta, reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs dro_step(const StepInputs& in) {
  auto [loss, per_token] =
      dro(in["log_prob"], in["old_log_prob"], in["advantage"], in["importance_weight"], in["mask"],
          in.spec().number("beta"), in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation dro_implementation() {
  return torch_implementation("dro", {"impl/torch/dro.cpp", kLine}, dro_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "dro(Tensor log_prob, Tensor old_log_prob, Tensor advantage, Tensor? importance_weight, "
      "Tensor mask, *, int total_tokens, int total_sequences, str reduction='token_mean', "
      "float beta=0.05, int max_length=16) -> (Tensor loss, Tensor per_token)");
  library.impl("dro", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::dro_operator));
}
