// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <tuple>

#include "impl/torch/policy_terms.h"
#include "impl/torch/reductions.h"

namespace lossgate::impl {

/// The per-token terms of GRPO, differentiable with respect to log_prob. ref_log_prob may be
/// undefined where options.kl_penalty is 0.
at::Tensor grpo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                      const at::Tensor& ref_log_prob, const at::Tensor& advantage,
                      const at::Tensor& valid, const PolicyOptions& options);

/// The loss of one micro-batch as its share of the step's, and its per-token terms.
std::tuple<at::Tensor, at::Tensor> grpo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                        const at::Tensor& ref_log_prob, const at::Tensor& advantage,
                                        const at::Tensor& mask, const PolicyOptions& options,
                                        const ReductionPlan& plan);

}  // namespace lossgate::impl
