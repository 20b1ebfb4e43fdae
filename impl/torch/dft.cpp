// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/row_loss.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

/// -p l of the token `taken` [..., 1], and p (softmax - delta), in which p is a constant.
TermsAndSlope dft_terms(const at::Tensor& x, const at::Tensor& taken) {
  const at::Tensor l = log_softmax(x), own = l.gather(-1, taken), p = own.exp();
  const at::Tensor less = at::full_like(taken, -1.0, x.options());
  return {weighed(p, own, own.neg()).squeeze(-1), l.exp().scatter_add_(-1, taken, less).mul_(p)};
}

std::tuple<at::Tensor, at::Tensor> dft(const at::Tensor& logits, const at::Tensor& label,
                                       const ReductionPlan& plan) {
  TORCH_CHECK(logits.dim() == 3, "logits must be [sequences, tokens, vocab], got ", logits.sizes());
  const at::Tensor valid = valid_from_labels(label, logits.sizes().slice(0, 2), logits.size(2));
  const at::Tensor taken = label.to(at::kLong).masked_fill(valid.logical_not(), 0).unsqueeze(-1);
  return row_loss(logits, valid, plan,
                  [&](const at::Tensor& x, const Chunk& of) { return dft_terms(x, of(taken)); });
}

std::tuple<at::Tensor, at::Tensor> dft_operator(const at::Tensor& logits, const at::Tensor& label,
                                                std::int64_t total_tokens,
                                                c10::string_view reduction,
                                                std::int64_t num_items) {
  return dft(logits, label,
             reduction_plan(reduction, {.total_tokens = total_tokens, .num_items = num_items}));
}

StepOutputs dft_step(const StepInputs& in) {
  auto [loss, per_token] = dft(in["logits"], in["label"], in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation dft_implementation() {
  return torch_implementation("dft", {"impl/torch/dft.cpp", kLine}, dft_step,
                              std::string(kSoftmaxForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "dft(Tensor logits, Tensor label, *, int total_tokens, str reduction='token_mean', "
      "int num_items=1) -> (Tensor loss, Tensor per_token)");
  library.impl("dft", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::dft_operator));
}
