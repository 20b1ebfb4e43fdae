// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

/// Advantages that carry the normalisation, for a loss that is then a sum. The counts are those of
/// the whole mini-batch, so it may be called on any part of it.
at::Tensor scale_advantages(const at::Tensor& advantage, const at::Tensor& mask,
                            const ReductionPlan& plan) {
  expect_positions(advantage, "advantage");
  const at::Tensor valid = valid_from(mask, advantage.sizes());
  return scaled(select(advantage, valid, compute_type(advantage.scalar_type())), valid, plan);
}

at::Tensor scale_advantages_operator(const at::Tensor& advantage, const at::Tensor& mask,
                                     std::int64_t total_tokens, std::int64_t total_sequences,
                                     c10::string_view normalisation, std::int64_t max_length) {
  return scale_advantages(
      advantage, mask,
      reduction_plan(normalisation, {total_tokens, total_sequences, max_length}, "normalisation"));
}

StepOutputs advantage_scaling_step(const StepInputs& in) {
  ReductionPlan plan = in.reduction_plan();
  plan.reduction = parse_reduction(in.spec().choice("normalisation")).value();
  return {.loss = {},
          .values = {{"scaled_advantage", scale_advantages(in["advantage"], in["mask"], plan)}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation advantage_scaling_implementation() {
  return torch_implementation("advantage_scaling", {"impl/torch/advantage_scaling.cpp", kLine},
                              advantage_scaling_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "scale_advantages(Tensor advantage, Tensor mask, *, int total_tokens, int total_sequences, "
      "str normalisation='token_mean', int max_length=16) -> Tensor");
  library.impl("scale_advantages", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::scale_advantages_operator));
}
