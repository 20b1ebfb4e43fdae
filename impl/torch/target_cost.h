// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

/// The cross-entropy of rows of logits [..., vocab] with label smoothing and z-loss. None of this
/// records a graph.
namespace lossgate::impl {

struct TargetCostOptions {
  double label_smoothing = 0.0, z_loss = 0.0;
};

/// Refuses a share outside [0, 1] and a negative coefficient.
void check_target_cost(const TargetCostOptions& options);

/// The cost of each row's token `taken` [..., 1], from the logits and their log-probs: [...].
at::Tensor target_cost(const at::Tensor& x, const at::Tensor& log_prob, const at::Tensor& taken,
                       const TargetCostOptions& options);

/// Its derivative by the logits.
at::Tensor target_cost_slope(const at::Tensor& x, const at::Tensor& log_prob,
                             const at::Tensor& taken, const TargetCostOptions& options);

}  // namespace lossgate::impl
