// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <limits>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct GmpoOptions {
  double clip_low = 0.4, clip_high = 0.4;
};

/// Terms [sequences], and their derivatives by each log-prob. The fields hold zeros behind the
/// mask. Nothing flows where a clip, an advantage of 0 or the mask decides, however large the
/// weight is.
TermsAndSlope gmpo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                         const at::Tensor& advantage, const at::Tensor& valid,
                         const GmpoOptions& options) {
  const at::Tensor counts = row_counts(valid).clamp_min(1).to(log_prob.scalar_type());
  const auto mean = [&](const at::Tensor& x) { return x.sum(1, /*keepdim=*/true).div_(counts); };
  const at::Tensor log_ratio = log_prob - old_log_prob;
  const at::Tensor rewarded = advantage > 0, silent = advantage == 0;
  const at::Tensor bounded = at::where(rewarded, log_ratio.clamp_max(options.clip_high),
                                       log_ratio.clamp_min(-options.clip_low));
  const at::Tensor outside =
      at::where(rewarded, log_ratio > options.clip_high, log_ratio < -options.clip_low);
  const at::Tensor log_weight = mean(bounded.masked_fill(silent, 0)), a = mean(advantage);
  at::Tensor value = log_weight.exp().mul_(a).neg_();
  // A zero decides, whatever it meets; a NaN stays.
  const at::Tensor vanished = (log_weight == -kInfinity).logical_or_(a == 0),
                   defined = (log_weight == log_weight).logical_and_(a == a);
  value.masked_fill_(vanished.logical_and_(defined), 0);
  return {value.squeeze(1), (value / counts).masked_fill(outside.logical_or(silent), 0)};
}

/// The sequences' share of the step's loss, and their terms, 0 where nothing is valid.
std::tuple<at::Tensor, at::Tensor> gmpo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                        const at::Tensor& advantage, const at::Tensor& mask,
                                        const GmpoOptions& options, const ReductionPlan& plan) {
  expect_positions(log_prob, "log_prob");
  expect_like(log_prob, old_log_prob, "old_log_prob");
  expect_like(log_prob, advantage, "advantage");
  check_limit(options.clip_low, 0.0, "clip_low");
  check_limit(options.clip_high, 0.0, "clip_high");
  const at::Tensor valid = valid_from(mask, log_prob.sizes());
  const TermsAndSlope terms = [&] {
    const at::NoGradGuard plain;
    const auto selected = [&](const at::Tensor& field) {
      return select(field, valid, compute_type(log_prob.scalar_type()));
    };
    return gmpo_terms(selected(log_prob), selected(old_log_prob), selected(advantage), valid,
                      options);
  }();
  const at::Tensor per_sequence = with_slope(log_prob, terms.first, terms.second);
  // A sequence is one term, however many positions of it count.
  const at::Tensor counted = valid.any(1, /*keepdim=*/true);
  return {reduce(per_sequence.unsqueeze(1), counted, plan), per_sequence};
}

std::tuple<at::Tensor, at::Tensor> gmpo_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob, const at::Tensor& advantage,
    const at::Tensor& mask, std::int64_t total_sequences, c10::string_view reduction,
    double clip_low, double clip_high) {
  return gmpo(log_prob, old_log_prob, advantage, mask,
              {.clip_low = clip_low, .clip_high = clip_high},
              reduction_plan(reduction, {.total_sequences = total_sequences}));
}

StepOutputs gmpo_step(const StepInputs& in) {
  auto [loss, per_sequence] =
      gmpo(in["log_prob"], in["old_log_prob"], in["advantage"], in["mask"],
           {.clip_low = in.spec().number("clip_low"), .clip_high = in.spec().number("clip_high")},
           in.reduction_plan());
  return {.loss = loss, .values = {{"per_sequence", per_sequence}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation gmpo_implementation() {
  return torch_implementation("gmpo", {"impl/torch/gmpo.cpp", kLine}, gmpo_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "gmpo(Tensor log_prob, Tensor old_log_prob, Tensor advantage, Tensor mask, *, "
      "int total_sequences, str reduction='sequence_mean', float clip_low=0.4, "
      "float clip_high=0.4) -> (Tensor loss, Tensor per_sequence)");
  library.impl("gmpo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::gmpo_operator));
}
