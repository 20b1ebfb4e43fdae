// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/row_loss.h"

#include "impl/torch/slope.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {

std::tuple<at::Tensor, at::Tensor> row_loss(
    const at::Tensor& logits, const at::Tensor& valid, const ReductionPlan& plan,
    const std::function<TermsAndSlope(const at::Tensor&)>& terms_of) {
  const TermsAndSlope terms = [&] {
    const at::NoGradGuard plain;
    const TermsAndSlope all = terms_of(select(logits, valid, compute_type(logits.scalar_type())));
    const at::Tensor masked = valid.logical_not();
    return TermsAndSlope{all.first.masked_fill(masked, 0),
                         all.second.masked_fill(masked.unsqueeze(-1), 0)};
  }();
  const at::Tensor per_token = with_slope(logits, terms.first, terms.second);
  return {reduce(per_token, valid, plan), per_token};
}

}  // namespace lossgate::impl
