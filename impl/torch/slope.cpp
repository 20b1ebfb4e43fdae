// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/slope.h"

#include <torch/csrc/autograd/custom_function.h>

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
    return {gradient.to(context->saved_data["stored"].toScalarType()), {}, {}};
  }
};

}  // namespace

at::Tensor with_slope(const at::Tensor& input, const at::Tensor& value, const at::Tensor& slope) {
  return WithSlope::apply(input, value, slope);
}

at::Tensor select(const at::Tensor& x, const at::Tensor& valid, at::ScalarType compute) {
  return at::where(over_rows(valid, x.dim()), x.to(compute), 0.0);
}

}  // namespace lossgate::impl
