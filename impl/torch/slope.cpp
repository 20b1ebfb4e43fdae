// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/slope.h"

#include <torch/csrc/autograd/custom_function.h>

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct WithSlope : torch::autograd::Function<WithSlope> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& value, const at::Tensor& slope) {
    context->save_for_backward({slope});
    context->saved_data["stored"] = input.scalar_type();
    return value;
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const at::Tensor gradient = upstream[0] * context->get_saved_variables()[0];
    return {gradient.to(context->saved_data["stored"].toScalarType()), {}, {}};
  }
};

}  // namespace

at::Tensor with_slope(const at::Tensor& input, const at::Tensor& value, const at::Tensor& slope) {
  return WithSlope::apply(input, value, slope);
}

at::Tensor select(const at::Tensor& x, const at::Tensor& valid, at::ScalarType compute) {
  at::Tensor rows = valid;
  for (std::int64_t axis = valid.dim(); axis < x.dim(); ++axis) rows = rows.unsqueeze(-1);
  return at::where(rows, x.to(compute), 0.0);
}

}  // namespace lossgate::impl
