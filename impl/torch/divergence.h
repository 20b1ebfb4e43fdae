// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

/// Distributions along the last axis. None of this records a graph.
namespace lossgate::impl {

/// (x - max) - log S with S = sum exp(x - max). Not at::log_softmax, whose f32 sum runs in eight
/// lanes: its error grows with the number of entries, not with its logarithm.
at::Tensor log_softmax(const at::Tensor& x);

/// Logits divided by the temperature. Finite ones stay finite: in a row of -infinity and a large
/// negative logit the latter has all the mass.
at::Tensor cooled(const at::Tensor& logits, double temperature);

/// The gradient by logits from the one by what `cooled` gives.
at::Tensor cooled_gradient(const at::Tensor& g, double temperature);

/// The gradient by x of sum g log_softmax(x).
at::Tensor log_softmax_gradient(const at::Tensor& log_prob, const at::Tensor& g);

/// p x, 0 where p is exactly 0, that is log p is -infinity.
at::Tensor weighed(const at::Tensor& p, const at::Tensor& log_p, const at::Tensor& x);

struct Divergence {
  at::Tensor value;  ///< summed over the last axis
  at::Tensor slope;  ///< by each student log-prob
};

/// The generalised Jensen-Shannon divergence from log-probs; beta = 0 is the forward, beta = 1 the
/// reverse KL. The mixture is formed from logarithms: where both probabilities underflow, its own
/// would be log 0. Of the slope's terms those that cancel are left out, and so is, where the
/// student is `normalised`, the p of beta = 1, which a softmax sends to 0.
Divergence jensen_shannon(const at::Tensor& student, const at::Tensor& teacher, double beta,
                          bool normalised);

/// -sum q log p: the forward KL without the teacher's entropy.
Divergence soft_cross_entropy(const at::Tensor& student, const at::Tensor& teacher);

/// Refuses a beta outside [0, 1] and a temperature that is not positive.
void check_divergence_options(double beta, double temperature);

}  // namespace lossgate::impl
