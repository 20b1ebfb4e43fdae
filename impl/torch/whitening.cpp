// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/whitening.h"

#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

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

constexpr int kLine = __LINE__;

}  // namespace

at::Tensor whitened(const at::Tensor& x, const at::Tensor& valid, bool shift_mean, double epsilon) {
  TORCH_CHECK(epsilon >= 0.0, "epsilon must not be negative, got ", epsilon);
  const at::Tensor count = valid.sum();
  const auto over_valid = [&](const at::Tensor& of) { return at::where(valid, of, 0.0).sum(); };
  const at::Tensor mean = over_valid(x) / count.clamp_min(1), distance = x - mean;
  const at::Tensor variance = over_valid(distance.square()) / (count - 1).clamp_min(1);
  const at::Tensor result = distance / (variance + epsilon).sqrt();
  return at::where(valid, shift_mean ? result : result + mean, 0.0);
}

Implementation whitening_implementation() {
  return torch_implementation("whitening", {"impl/torch/whitening.cpp", kLine}, whitening_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "whiten(Tensor advantage, Tensor mask, *, bool shift_mean=True, float epsilon=1e-8) "
      "-> Tensor");
  library.impl("whiten", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::whiten));
}
