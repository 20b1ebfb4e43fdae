// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

struct CispoOptions {
  double weight_low = 0.0, weight_high = 5.0;
  std::optional<double> log_ratio_clamp = 20.0;
};

TermsAndSlope cispo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                          const at::Tensor& advantage, const CispoOptions& options) {
  const ImportanceWeight weight =
      importance_weight(log_prob - old_log_prob, options.log_ratio_clamp);
  return under_coefficient(
      weight.value.clamp(options.weight_low, options.weight_high).mul_(advantage).neg_(), log_prob);
}

std::tuple<at::Tensor, at::Tensor> cispo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                         const at::Tensor& advantage, const at::Tensor& mask,
                                         const CispoOptions& options, const ReductionPlan& plan) {
  TORCH_CHECK(options.weight_low <= options.weight_high, "weight_low must not exceed weight_high");
  check_limit(options.weight_low, 0.0, "weight_low");
  check_limit(options.log_ratio_clamp, 0.0, "log_ratio_clamp");
  return position_loss(
      {{"log_prob", log_prob}, {"old_log_prob", old_log_prob}, {"advantage", advantage}}, mask,
      plan, [&](const Tensors& f) { return cispo_terms(f[0], f[1], f[2], options); });
}

std::tuple<at::Tensor, at::Tensor> cispo_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob, const at::Tensor& advantage,
    const at::Tensor& mask, std::int64_t total_tokens, std::int64_t total_sequences,
    c10::string_view reduction, double weight_low, double weight_high,
    std::optional<double> log_ratio_clamp, std::int64_t max_length) {
  return cispo(
      log_prob, old_log_prob, advantage, mask,
      {.weight_low = weight_low, .weight_high = weight_high, .log_ratio_clamp = log_ratio_clamp},
      reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs cispo_step(const StepInputs& in) {
  auto [loss, per_token] = cispo(in["log_prob"], in["old_log_prob"], in["advantage"], in["mask"],
                                 {.weight_low = in.spec().number("weight_low"),
                                  .weight_high = in.spec().number("weight_high"),
                                  .log_ratio_clamp = limit_option(in.spec(), "log_ratio_clamp")},
                                 in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation cispo_implementation() {
  return torch_implementation("cispo", {"impl/torch/cispo.cpp", kLine}, cispo_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "cispo(Tensor log_prob, Tensor old_log_prob, Tensor advantage, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', float weight_low=0.0, "
      "float weight_high=5.0, float? log_ratio_clamp=20.0, int max_length=16) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("cispo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::cispo_operator));
}
