// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/target_cost.h"

namespace lossgate::impl {
namespace {

/// What the smoothing gives to each token.
double share(const at::Tensor& x, const TargetCostOptions& options) {
  return options.label_smoothing / static_cast<double>(x.size(-1));
}

}  // namespace

void check_target_cost(const TargetCostOptions& options) {
  TORCH_CHECK(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0,
              "label_smoothing must lie in [0, 1], got ", options.label_smoothing);
  TORCH_CHECK(options.z_loss >= 0.0, "z_loss must not be negative, got ", options.z_loss);
}

at::Tensor target_cost(const at::Tensor& x, const at::Tensor& log_prob, const at::Tensor& taken,
                       const TargetCostOptions& options) {
  const double a = options.label_smoothing;
  at::Tensor cost =
      a == 1.0 ? at::zeros_like(taken, x.options()) : log_prob.gather(-1, taken).mul_(a - 1.0);
  if (a > 0.0) cost = cost.sub_((log_prob * share(x, options)).sum(-1, /*keepdim=*/true));
  if (options.z_loss > 0.0) {
    const at::Tensor whole = x.logsumexp(-1, /*keepdim=*/true);
    cost = cost.add_((whole * options.z_loss).mul_(whole));
  }
  return cost.squeeze(-1);
}

/// p (1 + 2 z logsumexp) less the target, in which the taken token's 1 comes last.
at::Tensor target_cost_slope(const at::Tensor& x, const at::Tensor& log_prob,
                             const at::Tensor& taken, const TargetCostOptions& options) {
  at::Tensor slope = log_prob.exp();
  if (options.z_loss > 0.0) {
    const at::Tensor whole = x.logsumexp(-1, /*keepdim=*/true);
    slope = slope + slope * (whole * (2.0 * options.z_loss));
  }
  const at::Tensor rest = at::full_like(taken, options.label_smoothing - 1.0, x.options());
  return slope.sub_(share(x, options)).scatter_add_(-1, taken, rest);
}

}  // namespace lossgate::impl
