// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "impl/torch/reductions.h"

namespace lossgate::impl {

/// Terms [sequences, tokens] and their derivatives, entry by entry, by the first field.
using TermsAndSlope = std::pair<at::Tensor, at::Tensor>;
using Tensors = std::vector<at::Tensor>;

/// log_prob under a coefficient without a gradient. Where that is 0, so is the term of an
/// impossible token; NaN stays visible.
TermsAndSlope under_coefficient(const at::Tensor& coefficient, const at::Tensor& log_prob);

/// An argument of one number a position, [sequences, tokens].
struct PositionField {
  const char* name;
  const at::Tensor& tensor;
};

/// A loss of one term a position: its share of the step's loss, and its terms, 0 where masked.
/// `terms_of` is given the fields in their order, in the compute format, with zeros behind the
/// mask; the first is the one that is differentiated. Refuses fields of unequal shapes.
std::tuple<at::Tensor, at::Tensor> position_loss(
    const std::vector<PositionField>& fields, const at::Tensor& mask, const ReductionPlan& plan,
    const std::function<TermsAndSlope(const Tensors&)>& terms_of);

}  // namespace lossgate::impl
