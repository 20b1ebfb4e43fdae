// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <optional>
#include <string>

#include "impl/torch/catalog.h"
#include "impl/torch/policy_terms.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

struct CorrectionOptions {
  c10::string_view level = "token", beyond = "truncate";
  double weight_low = 0.0, weight_high = 2.0;
  std::optional<double> log_ratio_clamp = 20.0;
};

void check_options(const CorrectionOptions& options) {
  const auto& [level, beyond, low, high, clamp] = options;
  TORCH_CHECK(level == "token" || level == "sequence" || level == "geometric",
              "level must be token, sequence or geometric, got '", std::string(level), "'");
  TORCH_CHECK(beyond == "truncate" || beyond == "drop", "beyond must be truncate or drop, got '",
              std::string(beyond), "'");
  TORCH_CHECK(low >= 0.0 && low <= high, "weight_low must lie in [0, weight_high], got ", low);
  check_limit(clamp, 0.0, "log_ratio_clamp");
}

/// The weight of each token, 0 where masked. What is dropped is filled, never multiplied by 0: it
/// may be infinite. NaN stays.
at::Tensor rollout_correction(const at::Tensor& old_log_prob, const at::Tensor& sampler_log_prob,
                              const at::Tensor& mask, const CorrectionOptions& options) {
  expect_positions(old_log_prob, "old_log_prob");
  expect_like(old_log_prob, sampler_log_prob, "sampler_log_prob");
  check_options(options);
  const at::NoGradGuard plain;
  const at::Tensor valid = valid_from(mask, old_log_prob.sizes());
  const at::ScalarType compute = compute_type(old_log_prob.scalar_type());
  at::Tensor log_ratio =
      select(old_log_prob, valid, compute) - select(sampler_log_prob, valid, compute);
  if (options.level != "token") log_ratio = log_ratio.sum(1, true);
  if (options.level == "geometric") log_ratio = log_ratio / row_counts(valid).clamp_min(1);
  const at::Tensor weight = importance_weight(log_ratio, options.log_ratio_clamp).value;
  const at::Tensor bounded =
      options.beyond == "truncate"
          ? weight.clamp(options.weight_low, options.weight_high)
          : weight.masked_fill((weight < options.weight_low) | (weight > options.weight_high), 0);
  return bounded.expand_as(valid).masked_fill(~valid, 0);
}

at::Tensor rollout_correction_operator(const at::Tensor& old_log_prob,
                                       const at::Tensor& sampler_log_prob, const at::Tensor& mask,
                                       c10::string_view level, c10::string_view beyond,
                                       double weight_low, double weight_high,
                                       std::optional<double> log_ratio_clamp) {
  return rollout_correction(old_log_prob, sampler_log_prob, mask,
                            {.level = level,
                             .beyond = beyond,
                             .weight_low = weight_low,
                             .weight_high = weight_high,
                             .log_ratio_clamp = log_ratio_clamp});
}

StepOutputs rollout_correction_step(const StepInputs& in) {
  const LossSpec& spec = in.spec();
  const std::string level = spec.choice("level"), beyond = spec.choice("beyond");
  return {.loss = {},
          .values = {{"weight", rollout_correction(
                                    in["old_log_prob"], in["sampler_log_prob"], in["mask"],
                                    {.level = level,
                                     .beyond = beyond,
                                     .weight_low = spec.number("weight_low"),
                                     .weight_high = spec.number("weight_high"),
                                     .log_ratio_clamp = limit_option(spec, "log_ratio_clamp")})}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation rollout_correction_implementation() {
  return torch_implementation("rollout_correction", {"impl/torch/rollout_correction.cpp", kLine},
                              rollout_correction_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "rollout_correction(Tensor old_log_prob, Tensor sampler_log_prob, Tensor mask, *, "
      "str level='token', str beyond='truncate', float weight_low=0.0, float weight_high=2.0, "
      "float? log_ratio_clamp=20.0) -> Tensor");
  library.impl("rollout_correction", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::rollout_correction_operator));
}
