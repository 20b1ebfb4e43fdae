// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/slope.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <memory>

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// With axes of one entry added at the end.
at::Tensor over_rows(at::Tensor x, std::int64_t axes) {
  while (x.dim() < axes) x = x.unsqueeze(-1);
  return x;
}

struct WithSlope : torch::autograd::Function<WithSlope> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& value, const at::Tensor& slope) {
    context->save_for_backward({slope});
    context->saved_data["stored"] = input.scalar_type();
    return value;
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const at::Tensor slope = context->get_saved_variables()[0];
    const at::Tensor gradient = over_rows(upstream[0], slope.dim()) * slope;
    return {once(gradient.to(context->saved_data["stored"].toScalarType())), {}, {}};
  }
};

}  // namespace

at::Tensor with_slope(const at::Tensor& input, const at::Tensor& value, const at::Tensor& slope) {
  return WithSlope::apply(input, value, slope);
}

std::optional<at::Tensor> if_defined(const at::Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

at::Tensor once(const at::Tensor& gradient) {
  if (!at::GradMode::is_enabled()) return gradient;
  const auto refusing = std::make_shared<torch::autograd::DelayedError>(
      "a loss of lossgate is differentiated once: its gradient has none of its own", 1);
  return (*refusing)({gradient.detach().requires_grad_()})[0];
}

at::Tensor select(const at::Tensor& x, const at::Tensor& valid, at::ScalarType compute) {
  return at::where(over_rows(valid, x.dim()), x.to(compute), 0.0);
}

}  // namespace lossgate::impl
