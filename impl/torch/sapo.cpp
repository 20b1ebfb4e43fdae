// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

struct SapoOptions {
  double tau_positive = 1.0, tau_negative = 1.05;
  std::optional<double> log_ratio_clamp = 20.0;
};

/// Where the gate is closed, or the clamp holds, nothing flows, however large the weight is.
TermsAndSlope sapo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                         const at::Tensor& advantage, const SapoOptions& options) {
  const ImportanceWeight weight =
      importance_weight(log_prob - old_log_prob, options.log_ratio_clamp);
  const at::Tensor rewarded = advantage > 0, silent = advantage == 0;
  const at::Tensor tau =
      at::full_like(advantage, options.tau_negative).masked_fill_(rewarded, options.tau_positive);
  const at::Tensor gate = ((weight.value - 1.0) * tau).sigmoid_();
  const at::Tensor value = (gate * (4.0 / tau)).mul_(advantage).neg_();
  const at::Tensor open = gate * (1.0 - gate);
  at::Tensor slope = (open * weight.value).masked_fill_(open == 0, 0).mul_(-4.0).mul_(advantage);
  slope.masked_fill_(weight.clamped.defined() ? weight.clamped : weight.vanished, 0);
  return {value.masked_fill(silent, 0), slope.masked_fill_(silent, 0)};
}

std::tuple<at::Tensor, at::Tensor> sapo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                        const at::Tensor& advantage, const at::Tensor& mask,
                                        const SapoOptions& options, const ReductionPlan& plan) {
  TORCH_CHECK(options.tau_positive > 0.0, "tau_positive must be positive, got ",
              options.tau_positive);
  TORCH_CHECK(options.tau_negative > 0.0, "tau_negative must be positive, got ",
              options.tau_negative);
  check_limit(options.log_ratio_clamp, 0.0, "log_ratio_clamp");
  return position_loss(
      {{"log_prob", log_prob}, {"old_log_prob", old_log_prob}, {"advantage", advantage}}, mask,
      plan, [&](const Tensors& f) { return sapo_terms(f[0], f[1], f[2], options); });
}

std::tuple<at::Tensor, at::Tensor> sapo_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob, const at::Tensor& advantage,
    const at::Tensor& mask, std::int64_t total_tokens, std::int64_t total_sequences,
    c10::string_view reduction, double tau_positive, double tau_negative,
    std::optional<double> log_ratio_clamp, std::int64_t max_length) {
  return sapo(log_prob, old_log_prob, advantage, mask,
              {.tau_positive = tau_positive,
               .tau_negative = tau_negative,
               .log_ratio_clamp = log_ratio_clamp},
              reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs sapo_step(const StepInputs& in) {
  auto [loss, per_token] = sapo(in["log_prob"], in["old_log_prob"], in["advantage"], in["mask"],
                                {.tau_positive = in.spec().number("tau_positive"),
                                 .tau_negative = in.spec().number("tau_negative"),
                                 .log_ratio_clamp = limit_option(in.spec(), "log_ratio_clamp")},
                                in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation sapo_implementation() {
  return torch_implementation("sapo", {"impl/torch/sapo.cpp", kLine}, sapo_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "sapo(Tensor log_prob, Tensor old_log_prob, Tensor advantage, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', "
      "float tau_positive=1.0, float tau_negative=1.05, float? log_ratio_clamp=20.0, "
      "int max_length=16) -> (Tensor loss, Tensor per_token)");
  library.impl("sapo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::sapo_operator));
}
