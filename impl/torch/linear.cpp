// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/linear.h"

#include <torch/csrc/autograd/custom_function.h>

#include "impl/torch/divergence.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LinearLogProb : torch::autograd::Function<LinearLogProb> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& label, const at::Tensor& valid, double temperature) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor rows = row_indices(valid);
    const at::Tensor taken = label.flatten().index_select(0, rows).to(at::kLong).unsqueeze(-1);
    context->save_for_backward({hidden, weight, bias, rows, taken});
    context->saved_data["temperature"] = temperature;
    const OutputLayer layer{widened(weight), widened(bias), temperature};
    const at::Tensor inputs = valid_rows(hidden, rows);
    const at::Tensor log_prob = at::empty({rows.size(0)}, inputs.options());
    for_each_chunk(rows.size(0), [&](std::int64_t first, std::int64_t length) {
      const at::Tensor l = log_softmax(layer.logits(inputs.narrow(0, first, length)));
      log_prob.narrow(0, first, length)
          .copy_(l.gather(-1, taken.narrow(0, first, length)).squeeze(-1));
    });
    return at_rows(log_prob, rows, valid.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &weight = saved[1], &bias = saved[2], &rows = saved[3],
                     &taken = saved[4];
    const OutputLayer layer{widened(weight), widened(bias),
                            context->saved_data["temperature"].toDouble()};
    const at::Tensor inputs = valid_rows(hidden, rows);
    const at::Tensor slope = valid_rows(upstream[0], rows).unsqueeze(-1);
    LayerGradients gradients(layer, inputs);
    for_each_chunk(rows.size(0), [&](std::int64_t first, std::int64_t length) {
      const at::Tensor x = inputs.narrow(0, first, length);
      const at::Tensor g = slope.narrow(0, first, length);
      at::Tensor by_logit = log_softmax(layer.logits(x)).exp_().mul_(g).neg_();
      by_logit.scatter_add_(-1, taken.narrow(0, first, length), g);
      gradients.add(layer, x, by_logit, first);
    });
    return {at_rows(gradients.hidden, rows, hidden.sizes()).to(hidden.scalar_type()),
            gradients.weight.to(weight.scalar_type()),
            bias.defined() ? gradients.bias.to(bias.scalar_type()) : at::Tensor(),
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor OutputLayer::logits(const at::Tensor& hidden) const {
  return cooled(bias.defined() ? at::addmm(bias, hidden, weight.t()) : hidden.mm(weight.t()),
                temperature);
}

LayerGradients::LayerGradients(const OutputLayer& layer, const at::Tensor& hidden_rows)
    : hidden(at::empty_like(hidden_rows)),
      weight(at::zeros(layer.weight.sizes(), layer.weight.options())) {
  if (layer.bias.defined()) bias = at::zeros(layer.bias.sizes(), layer.bias.options());
}

void LayerGradients::add(const OutputLayer& layer, const at::Tensor& hidden_rows,
                         const at::Tensor& by_logit, std::int64_t first) {
  const at::Tensor g = cooled_gradient(by_logit, layer.temperature);
  hidden.narrow(0, first, g.size(0)).copy_(g.mm(layer.weight));
  weight.addmm_(g.t(), hidden_rows);
  if (bias.defined()) bias.add_(g.sum(0));
}

at::Tensor row_indices(const at::Tensor& valid) {
  // Without data, as many rows as there may be.
  if (valid.is_meta()) return at::empty({valid.numel()}, valid.options().dtype(at::kLong));
  return valid.flatten().nonzero().squeeze(-1);
}

at::Tensor valid_rows(const at::Tensor& x, const at::Tensor& rows) {
  return x.flatten(0, 1).index_select(0, rows).to(compute_type(x.scalar_type()));
}

at::Tensor at_rows(const at::Tensor& values, const at::Tensor& rows, at::IntArrayRef extents) {
  at::Tensor all = at::zeros(extents, values.options());
  all.flatten(0, 1).index_copy_(0, rows, values);
  return all;
}

void check_layer(const at::Tensor& hidden, const at::Tensor& weight, const char* hidden_argument,
                 const char* weight_argument) {
  TORCH_CHECK(hidden.dim() == 3, hidden_argument, " must be [sequences, tokens, hidden], got ",
              hidden.sizes());
  TORCH_CHECK(weight.dim() == 2 && weight.size(1) == hidden.size(2), weight_argument,
              " must be [vocab, ", hidden.size(2), "], got ", weight.sizes());
}

void check_bias(const at::Tensor& bias, const at::Tensor& weight) {
  TORCH_CHECK(!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1), "bias has shape ",
              bias.sizes(), ", expected [", weight.size(0), "]");
}

at::Tensor widened(const at::Tensor& x) {
  return x.defined() ? x.to(compute_type(x.scalar_type())) : x;
}

at::Tensor linear_log_prob(const at::Tensor& hidden, const at::Tensor& weight,
                           const at::Tensor& bias, const at::Tensor& label, const at::Tensor& valid,
                           double temperature) {
  return LinearLogProb::apply(hidden, weight, bias, label, valid, temperature);
}

}  // namespace lossgate::impl
