// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/row_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

/// -c H with H = -sum p l, and c p (l + H).
TermsAndSlope entropy_terms(const at::Tensor& x, double coefficient) {
  const at::Tensor l = log_softmax(x), p = l.exp();
  const at::Tensor negative = weighed(p, l, l).sum(-1, /*keepdim=*/true);
  return {negative.squeeze(-1) * coefficient, weighed(p, l, l - negative).mul_(coefficient)};
}

std::tuple<at::Tensor, at::Tensor> entropy_bonus(const at::Tensor& logits, const at::Tensor& mask,
                                                 double coefficient, const ReductionPlan& plan) {
  TORCH_CHECK(logits.dim() == 3, "logits must be [sequences, tokens, vocab], got ", logits.sizes());
  return row_loss(logits, valid_from(mask, logits.sizes().slice(0, 2)), plan,
                  [&](const at::Tensor& x, const Chunk&) { return entropy_terms(x, coefficient); });
}

std::tuple<at::Tensor, at::Tensor> entropy_bonus_operator(
    const at::Tensor& logits, const at::Tensor& mask, std::int64_t total_tokens,
    std::int64_t total_sequences, c10::string_view reduction, double coefficient,
    std::int64_t max_length) {
  return entropy_bonus(logits, mask, coefficient,
                       reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs entropy_bonus_step(const StepInputs& in) {
  auto [loss, per_token] =
      entropy_bonus(in["logits"], in["mask"], in.spec().number("coefficient"), in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation entropy_bonus_implementation() {
  return torch_implementation("entropy_bonus", {"impl/torch/entropy_bonus.cpp", kLine},
                              entropy_bonus_step, std::string(kSoftmaxForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "entropy_bonus(Tensor logits, Tensor mask, *, int total_tokens, int total_sequences, "
      "str reduction='token_mean', float coefficient=0.01, int max_length=16) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("entropy_bonus", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::entropy_bonus_operator));
}
