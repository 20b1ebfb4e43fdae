// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>

namespace lossgate::impl {

/// `value` as a function of `input` whose derivative, entry by entry, is `slope`: the backward is
/// one product, rounded once to the input's format. One value may belong to a row of the input.
at::Tensor with_slope(const at::Tensor& input, const at::Tensor& value, const at::Tensor& slope);

/// As a differentiable function takes it, which refuses an undefined tensor.
std::optional<at::Tensor> if_defined(const at::Tensor& x);

/// A gradient that is written out and has no derivative of its own: whoever asks for one gets an
/// error rather than what the upstream gradient alone contributes to it.
at::Tensor once(const at::Tensor& gradient);

/// x in its compute format where `valid`, else 0: what a mask hides never meets arithmetic. A mask
/// [sequences, tokens] covers whole rows of tensors with more axes.
at::Tensor select(const at::Tensor& x, const at::Tensor& valid, at::ScalarType compute);

}  // namespace lossgate::impl
