// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/position_loss.h"

#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {

TermsAndSlope under_coefficient(const at::Tensor& coefficient, const at::Tensor& log_prob) {
  const at::Tensor silent = (coefficient == 0).logical_and_(log_prob.isinf());
  return {(coefficient * log_prob).masked_fill_(silent, 0), coefficient};
}

std::tuple<at::Tensor, at::Tensor> position_loss(
    const std::vector<PositionField>& fields, const at::Tensor& mask, const ReductionPlan& plan,
    const std::function<TermsAndSlope(const Tensors&)>& terms_of) {
  const at::Tensor& leaf = fields.front().tensor;
  expect_positions(leaf, fields.front().name);
  for (const PositionField& field : fields) expect_like(leaf, field.tensor, field.name);
  const at::Tensor valid = valid_from(mask, leaf.sizes());
  const TermsAndSlope terms = [&] {
    const at::NoGradGuard plain;
    Tensors selected;
    for (const PositionField& field : fields) {
      selected.push_back(select(field.tensor, valid, compute_type(leaf.scalar_type())));
    }
    const TermsAndSlope all = terms_of(selected);
    const at::Tensor masked = valid.logical_not();
    return TermsAndSlope{all.first.masked_fill(masked, 0), all.second.masked_fill(masked, 0)};
  }();
  const at::Tensor per_token = with_slope(leaf, terms.first, terms.second);
  return {reduce(per_token, valid, plan), per_token};
}

}  // namespace lossgate::impl
