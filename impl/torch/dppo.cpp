// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <optional>
#include <string>

#include "impl/torch/catalog.h"
#include "impl/torch/policy_terms.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

struct DppoOptions {
  std::string divergence = "tv";
  double divergence_low = 0.2, divergence_high = 0.2, epsilon = 1e-8;
  std::string surrogate = "log_prob";
  std::optional<double> weight_high = 20.0, log_ratio_clamp = 20.0;
};

void check_options(const DppoOptions& options) {
  TORCH_CHECK(options.divergence == "tv" || options.divergence == "kl",
              "divergence must be tv or kl, got '", options.divergence, "'");
  TORCH_CHECK(options.surrogate == "log_prob" || options.surrogate == "weight",
              "surrogate must be log_prob or weight, got '", options.surrogate, "'");
  check_limit(options.divergence_low, 0.0, "divergence_low");
  check_limit(options.divergence_high, 0.0, "divergence_high");
  check_limit(options.epsilon, 0.0, "epsilon");
  check_limit(options.weight_high, 0.0, "weight_high");
  check_limit(options.log_ratio_clamp, 0.0, "log_ratio_clamp");
}

/// p x, 0 where p is, whatever x is.
at::Tensor weighed(const at::Tensor& p, const at::Tensor& x) {
  return (p * x).masked_fill_(p == 0, 0);
}

/// The divergence of the token and all others; 1 - p keeps its digits where p is near 1.
at::Tensor binary_kl(const at::Tensor& log_prob, const at::Tensor& old_log_prob, double epsilon) {
  const at::Tensor rest = log_prob.expm1().neg_(), old_rest = old_log_prob.expm1().neg_();
  const at::Tensor others = ((old_rest + epsilon) / (rest + epsilon)).log_();
  return weighed(old_log_prob.exp(), old_log_prob - log_prob) + weighed(old_rest, others);
}

/// Where a token moves beyond its bound. Comparisons with NaN are false: it is not left out.
at::Tensor beyond(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                  const at::Tensor& advantage, const DppoOptions& options) {
  const at::Tensor moved = log_prob.exp() - old_log_prob.exp();
  const at::Tensor divergence =
      options.divergence == "tv" ? moved.abs() : binary_kl(log_prob, old_log_prob, options.epsilon);
  const at::Tensor upwards = (advantage > 0) & (moved > 0) & (divergence > options.divergence_high);
  return upwards | ((advantage < 0) & (moved < 0) & (divergence > options.divergence_low));
}

TermsAndSlope dppo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                         const at::Tensor& advantage, const DppoOptions& options) {
  const ImportanceWeight weight =
      importance_weight(log_prob - old_log_prob, options.log_ratio_clamp);
  at::Tensor bounded = weight.value, kept = advantage.neg();
  if (options.weight_high) bounded = bounded.clamp_max(*options.weight_high);
  kept.masked_fill_(beyond(log_prob, old_log_prob, advantage, options), 0);
  // A zero of these is selected: it silences a weight that is infinite, and NaN stays visible.
  const at::Tensor silent = (kept == 0).logical_and_(bounded.isinf());
  const at::Tensor coefficient = (bounded * kept).masked_fill_(silent, 0);
  if (options.surrogate == "log_prob") return under_coefficient(coefficient, log_prob);
  if (options.weight_high) kept.masked_fill_(weight.value > *options.weight_high, 0);
  return {coefficient, through_weight(kept, weight)};
}

std::tuple<at::Tensor, at::Tensor> dppo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                        const at::Tensor& advantage, const at::Tensor& mask,
                                        const DppoOptions& options, const ReductionPlan& plan) {
  check_options(options);
  return position_loss(
      {{"log_prob", log_prob}, {"old_log_prob", old_log_prob}, {"advantage", advantage}}, mask,
      plan, [&](const Tensors& f) { return dppo_terms(f[0], f[1], f[2], options); });
}

std::tuple<at::Tensor, at::Tensor> dppo_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob, const at::Tensor& advantage,
    const at::Tensor& mask, std::int64_t total_tokens, std::int64_t total_sequences,
    c10::string_view reduction, c10::string_view divergence, double divergence_low,
    double divergence_high, double epsilon, c10::string_view surrogate,
    std::optional<double> weight_high, std::optional<double> log_ratio_clamp,
    std::int64_t max_length) {
  return dppo(log_prob, old_log_prob, advantage, mask,
              {.divergence = std::string(divergence),
               .divergence_low = divergence_low,
               .divergence_high = divergence_high,
               .epsilon = epsilon,
               .surrogate = std::string(surrogate),
               .weight_high = weight_high,
               .log_ratio_clamp = log_ratio_clamp},
              reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs dppo_step(const StepInputs& in) {
  const LossSpec& spec = in.spec();
  auto [loss, per_token] = dppo(in["log_prob"], in["old_log_prob"], in["advantage"], in["mask"],
                                {.divergence = spec.choice("divergence"),
                                 .divergence_low = spec.number("divergence_low"),
                                 .divergence_high = spec.number("divergence_high"),
                                 .epsilon = spec.number("epsilon"),
                                 .surrogate = spec.choice("surrogate"),
                                 .weight_high = limit_option(spec, "weight_high"),
                                 .log_ratio_clamp = limit_option(spec, "log_ratio_clamp")},
                                in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation dppo_implementation() {
  return torch_implementation("dppo", {"impl/torch/dppo.cpp", kLine}, dppo_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "dppo(Tensor log_prob, Tensor old_log_prob, Tensor advantage, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', str divergence='tv', "
      "float divergence_low=0.2, float divergence_high=0.2, float epsilon=1e-08, "
      "str surrogate='log_prob', float? weight_high=20.0, float? log_ratio_clamp=20.0, "
      "int max_length=16) -> (Tensor loss, Tensor per_token)");
  library.impl("dppo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::dppo_operator));
}
