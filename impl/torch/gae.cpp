// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <tuple>

#include "impl/torch/catalog.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"
#include "impl/torch/whitening.h"

namespace lossgate::impl {
namespace {

struct GaeOptions {
  double gamma = 1.0, lambda = 0.95;
  bool whiten = false;
  double epsilon = 1e-8;
};

/// Advantages and returns; what is masked is no transition, and 0 in both.
std::tuple<at::Tensor, at::Tensor> gae(const at::Tensor& reward, const at::Tensor& value,
                                       const at::Tensor& mask, const GaeOptions& options) {
  expect_positions(value, "value");
  expect_like(value, reward, "reward");
  TORCH_CHECK(options.gamma >= 0.0 && options.gamma <= 1.0, "gamma must lie in [0, 1], got ",
              options.gamma);
  TORCH_CHECK(options.lambda >= 0.0 && options.lambda <= 1.0, "lambda must lie in [0, 1], got ",
              options.lambda);
  const at::NoGradGuard plain;
  const at::Tensor valid = valid_from(mask, value.sizes());
  const at::ScalarType compute = compute_type(value.scalar_type());
  const at::Tensor r = select(reward, valid, compute), v = select(value, valid, compute);
  at::Tensor next_value = at::zeros({v.size(0)}, v.options()), next_advantage = next_value;
  const at::Tensor advantage = at::zeros_like(v);
  for (std::int64_t t = v.size(1) - 1; t >= 0; --t) {
    const at::Tensor counts = valid.select(1, t), own = v.select(1, t);
    const at::Tensor delta = r.select(1, t) + next_value * options.gamma - own;
    next_advantage = at::where(counts, delta + next_advantage * (options.gamma * options.lambda),
                               next_advantage);
    next_value = at::where(counts, own, next_value);
    advantage.select(1, t).copy_(at::where(counts, next_advantage, 0.0));
  }
  return {options.whiten ? whitened(advantage, valid, true, options.epsilon) : advantage,
          advantage + v};
}

std::tuple<at::Tensor, at::Tensor> gae_operator(const at::Tensor& reward, const at::Tensor& value,
                                                const at::Tensor& mask, double gamma, double lambda,
                                                bool whiten, double epsilon) {
  return gae(reward, value, mask,
             {.gamma = gamma, .lambda = lambda, .whiten = whiten, .epsilon = epsilon});
}

StepOutputs gae_step(const StepInputs& in) {
  const LossSpec& spec = in.spec();
  auto [advantage, returns] = gae(in["reward"], in["value"], in["mask"],
                                  {.gamma = spec.number("gamma"),
                                   .lambda = spec.number("lambda"),
                                   .whiten = spec.number("whiten") != 0.0,
                                   .epsilon = spec.number("epsilon")});
  return {.loss = {}, .values = {{"advantage", advantage}, {"return", returns}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation gae_implementation() {
  return torch_implementation("gae", {"impl/torch/gae.cpp", kLine}, gae_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "gae(Tensor reward, Tensor value, Tensor mask, *, float gamma=1.0, float lambda=0.95, "
      "bool whiten=False, float epsilon=1e-8) -> (Tensor advantage, Tensor returns)");
  library.impl("gae", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::gae_operator));
}
