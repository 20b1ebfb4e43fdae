// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <cmath>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

struct VespoOptions {
  double k_positive = 2.0, lambda_positive = 3.0, k_negative = 3.0, lambda_negative = 2.0;
  std::optional<double> log_ratio_clamp = 20.0;
};

/// Log-ratios are 0 behind the mask.
TermsAndSlope vespo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                          const at::Tensor& advantage, const VespoOptions& options) {
  at::Tensor log_ratio = log_prob - old_log_prob;
  if (options.log_ratio_clamp) {
    log_ratio.clamp_(-*options.log_ratio_clamp, *options.log_ratio_clamp);
  }
  const at::Tensor log_weight = log_ratio.sum(1, true).clamp_(std::log(1e-8), 20.0);
  const at::Tensor rewarded = advantage >= 0;
  const auto by_sign = [&](double positive, double negative) {
    return at::full_like(advantage, negative).masked_fill_(rewarded, positive);
  };
  const at::Tensor lambda = by_sign(options.lambda_positive, options.lambda_negative);
  at::Tensor slope = by_sign(options.k_positive, options.k_negative).mul_(log_weight);
  slope.add_(lambda).sub_(lambda * log_weight.exp()).exp_().mul_(advantage).neg_();
  return under_coefficient(slope, log_prob);
}

std::tuple<at::Tensor, at::Tensor> vespo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                         const at::Tensor& advantage, const at::Tensor& mask,
                                         const VespoOptions& options, const ReductionPlan& plan) {
  check_limit(options.k_positive, 0.0, "k_positive");
  check_limit(options.k_negative, 0.0, "k_negative");
  check_limit(options.lambda_positive, 0.0, "lambda_positive");
  check_limit(options.lambda_negative, 0.0, "lambda_negative");
  check_limit(options.log_ratio_clamp, 0.0, "log_ratio_clamp");
  return position_loss(
      {{"log_prob", log_prob}, {"old_log_prob", old_log_prob}, {"advantage", advantage}}, mask,
      plan, [&](const Tensors& f) { return vespo_terms(f[0], f[1], f[2], options); });
}

std::tuple<at::Tensor, at::Tensor> vespo_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob, const at::Tensor& advantage,
    const at::Tensor& mask, std::int64_t total_tokens, std::int64_t total_sequences,
    c10::string_view reduction, double k_positive, double lambda_positive, double k_negative,
    double lambda_negative, std::optional<double> log_ratio_clamp, std::int64_t max_length) {
  return vespo(log_prob, old_log_prob, advantage, mask,
               {.k_positive = k_positive,
                .lambda_positive = lambda_positive,
                .k_negative = k_negative,
                .lambda_negative = lambda_negative,
                .log_ratio_clamp = log_ratio_clamp},
               reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs vespo_step(const StepInputs& in) {
  auto [loss, per_token] = vespo(in["log_prob"], in["old_log_prob"], in["advantage"], in["mask"],
                                 {.k_positive = in.spec().number("k_positive"),
                                  .lambda_positive = in.spec().number("lambda_positive"),
                                  .k_negative = in.spec().number("k_negative"),
                                  .lambda_negative = in.spec().number("lambda_negative"),
                                  .log_ratio_clamp = limit_option(in.spec(), "log_ratio_clamp")},
                                 in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation vespo_implementation() {
  return torch_implementation("vespo", {"impl/torch/vespo.cpp", kLine}, vespo_step,
                              "exp(lambda + k log w - lambda w)");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "vespo(Tensor log_prob, Tensor old_log_prob, Tensor advantage, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', "
      "float k_positive=2.0, float lambda_positive=3.0, float k_negative=3.0, "
      "float lambda_negative=2.0, float? log_ratio_clamp=20.0, int max_length=16) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("vespo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::vespo_operator));
}
