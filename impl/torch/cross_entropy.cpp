// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/row_loss.h"
#include "impl/torch/step.h"
#include "impl/torch/target_cost.h"

namespace lossgate::impl {
namespace {

std::tuple<at::Tensor, at::Tensor> cross_entropy(const at::Tensor& logits, const at::Tensor& label,
                                                 const TargetCostOptions& options,
                                                 const ReductionPlan& plan) {
  TORCH_CHECK(logits.dim() == 3, "logits must be [sequences, tokens, vocab], got ", logits.sizes());
  check_target_cost(options);
  const at::Tensor valid = valid_from_labels(label, logits.sizes().slice(0, 2), logits.size(2));
  const at::Tensor taken = label.to(at::kLong).masked_fill(valid.logical_not(), 0).unsqueeze(-1);
  return row_loss(logits, valid, plan, [&](const at::Tensor& x, const Chunk& of) {
    const at::Tensor l = log_softmax(x);
    return TermsAndSlope{target_cost(x, l, of(taken), options),
                         target_cost_slope(x, l, of(taken), options)};
  });
}

std::tuple<at::Tensor, at::Tensor> cross_entropy_operator(
    const at::Tensor& logits, const at::Tensor& label, std::int64_t total_tokens,
    c10::string_view reduction, double label_smoothing, double z_loss, std::int64_t num_items) {
  return cross_entropy(
      logits, label, {.label_smoothing = label_smoothing, .z_loss = z_loss},
      reduction_plan(reduction, {.total_tokens = total_tokens, .num_items = num_items}));
}

StepOutputs cross_entropy_step(const StepInputs& in) {
  auto [loss, per_token] = cross_entropy(in["logits"], in["label"],
                                         {.label_smoothing = in.spec().number("label_smoothing"),
                                          .z_loss = in.spec().number("z_loss")},
                                         in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation cross_entropy_implementation() {
  return torch_implementation("cross_entropy", {"impl/torch/cross_entropy.cpp", kLine},
                              cross_entropy_step, std::string(kSoftmaxForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "cross_entropy(Tensor logits, Tensor label, *, int total_tokens, "
      "str reduction='token_mean', float label_smoothing=0.0, float z_loss=0.0, int num_items=1) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("cross_entropy", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::cross_entropy_operator));
}
