// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <tuple>
#include <vector>

#include "impl/torch/catalog.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

struct GaeOptions {
  double gamma = 1.0, lambda = 0.95;
  bool whiten = false;
  double epsilon = 1e-8;
};

/// Mean 0 and deviation 1 over valid entries, or the mean that there was; 0 elsewhere.
at::Tensor whitened(const at::Tensor& x, const at::Tensor& valid, bool shift_mean, double epsilon) {
  TORCH_CHECK(epsilon >= 0.0, "epsilon must not be negative, got ", epsilon);
  const at::Tensor count = valid.sum();
  const auto over_valid = [&](const at::Tensor& of) { return at::where(valid, of, 0.0).sum(); };
  const at::Tensor mean = over_valid(x) / count.clamp_min(1), distance = x - mean;
  const at::Tensor variance = over_valid(distance.square()) / (count - 1).clamp_min(1);
  const at::Tensor result = distance / (variance + epsilon).sqrt();
  return at::where(valid, shift_mean ? result : result + mean, 0.0);
}

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

at::Tensor whiten(const at::Tensor& advantage, const at::Tensor& mask, bool shift_mean,
                  double epsilon) {
  expect_positions(advantage, "advantage");
  const at::NoGradGuard plain;
  const at::Tensor valid = valid_from(mask, advantage.sizes());
  return whitened(select(advantage, valid, compute_type(advantage.scalar_type())), valid,
                  shift_mean, epsilon);
}

StepOutputs whitening_step(const StepInputs& in) {
  return {.loss = {},
          .values = {{"whitened",
                      whiten(in["advantage"], in["mask"], in.spec().number("shift_mean") != 0.0,
                             in.spec().number("epsilon"))}}};
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

Implementation whitening_implementation() {
  return torch_implementation("whitening", {"impl/torch/gae.cpp", kLine}, whitening_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "gae(Tensor reward, Tensor value, Tensor mask, *, float gamma=1.0, float lambda=0.95, "
      "bool whiten=False, float epsilon=1e-8) -> (Tensor advantage, Tensor returns)");
  library.impl("gae", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::gae_operator));
  library.def(
      "whiten(Tensor advantage, Tensor mask, *, bool shift_mean=True, float epsilon=1e-8) "
      "-> Tensor");
  library.impl("whiten", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::whiten));
}
