// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <tuple>

#include "impl/torch/chunks.h"
#include "impl/torch/position_loss.h"

namespace lossgate::impl {

/// A loss of one term a position that depends on a row of logits [sequences, tokens, vocab]: its
/// share of the step's loss, and its terms, 0 where not valid. `terms_of` is given the logits in
/// the compute format, with zeros behind the mask, chunk by chunk, and gives terms [sequences,
/// tokens] and their derivatives by the logits.
std::tuple<at::Tensor, at::Tensor> row_loss(
    const at::Tensor& logits, const at::Tensor& valid, const ReductionPlan& plan,
    const std::function<TermsAndSlope(const at::Tensor&, const Chunk&)>& terms_of);

}  // namespace lossgate::impl
