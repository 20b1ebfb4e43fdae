// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/row_loss.h"

#include "impl/torch/slope.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {

std::tuple<at::Tensor, at::Tensor> row_loss(
    const at::Tensor& logits, const at::Tensor& valid, const ReductionPlan& plan,
    const std::function<TermsAndSlope(const at::Tensor&, const Chunk&)>& terms_of) {
  const TermsAndSlope terms = [&] {
    const at::NoGradGuard plain;
    const at::ScalarType compute = compute_type(logits.scalar_type());
    const auto options = logits.options().dtype(compute).requires_grad(false);
    const TermsAndSlope all = {at::empty(valid.sizes(), options),
                               at::empty(logits.sizes(), options)};
    for_each_chunk(logits, [&](const Chunk& of) {
      const TermsAndSlope some = terms_of(select(of(logits), of(valid), compute), of);
      const at::Tensor masked = of(valid).logical_not();
      of(all.first).copy_(some.first.masked_fill(masked, 0));
      of(all.second).copy_(some.second.masked_fill(masked.unsqueeze(-1), 0));
    });
    return all;
  }();
  const at::Tensor per_token = with_slope(logits, terms.first, terms.second);
  return {reduce(per_token, valid, plan), per_token};
}

}  // namespace lossgate::impl
