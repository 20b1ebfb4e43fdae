// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/grpo.h"
#include "impl/torch/linear.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

/// GRPO from hidden states: the log-probs of a chunk of positions at a time, then as grpo.
std::tuple<at::Tensor, at::Tensor> linear_grpo(const at::Tensor& hidden, const at::Tensor& weight,
                                               const at::Tensor& bias, const at::Tensor& label,
                                               const at::Tensor& old_log_prob,
                                               const at::Tensor& ref_log_prob,
                                               const at::Tensor& advantage, double temperature,
                                               const PolicyOptions& options,
                                               const ReductionPlan& plan) {
  check_layer(hidden, weight, "hidden", "weight");
  check_bias(bias, weight);
  TORCH_CHECK(temperature > 0, "temperature must be positive, got ", temperature);
  const at::Tensor valid = valid_from_labels(label, hidden.sizes().slice(0, 2), weight.size(0));
  const at::Tensor log_prob = linear_log_prob(hidden, weight, bias, label, valid, temperature);
  return grpo(log_prob, old_log_prob, ref_log_prob, advantage, valid, options, plan);
}

using Optional = std::optional<double>;

std::tuple<at::Tensor, at::Tensor> linear_grpo_operator(
    const at::Tensor& hidden, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& label, const at::Tensor& old_log_prob,
    const std::optional<at::Tensor>& ref_log_prob, const at::Tensor& advantage,
    std::int64_t total_tokens, std::int64_t total_sequences, c10::string_view reduction,
    double clip_low, double clip_high, Optional dual_clip, Optional log_ratio_clamp,
    c10::string_view level, double kl_penalty, c10::string_view kl_estimator,
    Optional kl_input_clamp, Optional kl_output_clamp, bool kl_weighted, std::int64_t max_length,
    double temperature) {
  return linear_grpo(hidden, weight, bias.value_or(at::Tensor()), label, old_log_prob,
                     ref_log_prob.value_or(at::Tensor()), advantage, temperature,
                     {.clip_low = clip_low,
                      .clip_high = clip_high,
                      .dual_clip = dual_clip,
                      .log_ratio_clamp = log_ratio_clamp,
                      .sequence_level = parse_level(level),
                      .kl_penalty = kl_penalty,
                      .kl = {.estimator = parse_kl_estimator(kl_estimator),
                             .input_clamp = kl_input_clamp,
                             .output_clamp = kl_output_clamp,
                             .weighted = kl_weighted}},
                     reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs linear_grpo_step(const StepInputs& in) {
  auto [loss, per_token] =
      linear_grpo(in["hidden"], in["weight"], in["bias"], in["label"], in["old_log_prob"],
                  in["ref_log_prob"], in["advantage"], in.spec().number("temperature"),
                  policy_options(in.spec()), in.reduction_plan());
  return {
      .loss = loss, .values = {{"per_token", per_token}}, .counts = {{"rows", in.valid_tokens()}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation linear_grpo_implementation() {
  return torch_implementation("linear_grpo", {"impl/torch/linear_grpo.cpp", kLine},
                              linear_grpo_step, std::string(kLinearGrpoForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "linear_grpo(Tensor hidden, Tensor weight, Tensor? bias, Tensor label, "
      "Tensor old_log_prob, Tensor? ref_log_prob, Tensor advantage, *, int total_tokens, "
      "int total_sequences, str reduction='token_mean', float clip_low=0.2, "
      "float clip_high=0.2, float? dual_clip=None, float? log_ratio_clamp=20.0, "
      "str level='token', float kl_penalty=0.04, str kl_estimator='k3', "
      "float? kl_input_clamp=20.0, float? kl_output_clamp=10.0, bool kl_weighted=False, "
      "int max_length=16, float temperature=1.0) -> (Tensor loss, Tensor per_token)");
  library.impl("linear_grpo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::linear_grpo_operator));
}
