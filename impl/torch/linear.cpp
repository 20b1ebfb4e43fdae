// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/linear.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "impl/torch/divergence.h"
#include "impl/torch/slope.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LinearLogProb : torch::autograd::Function<LinearLogProb> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const std::optional<at::Tensor>& some_bias,
                            const at::Tensor& label, const at::Tensor& valid, double temperature) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor bias = some_bias.value_or(at::Tensor());
    const at::Tensor rows = row_indices(valid), taken = taken_at(label, rows);
    context->save_for_backward({hidden, weight, bias, rows, taken});
    context->saved_data["temperature"] = temperature;
    return LinearRows(hidden, weight, bias, rows, temperature)
        .terms([&](const at::Tensor& logits, const RowChunk& of) {
          return log_softmax(logits).gather(-1, of(taken)).squeeze(-1);
        });
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& taken = saved[4];
    const LinearRows rows(saved[0], saved[1], saved[2], saved[3],
                          context->saved_data["temperature"].toDouble());
    variable_list gradients = rows.gradients(
        upstream[0], context->needs_input_grad(1),
        [&](const at::Tensor& logits, const at::Tensor& g, const RowChunk& of) {
          return log_softmax(logits).exp_().mul_(g).neg_().scatter_add_(-1, of(taken), g);
        });
    gradients.resize(6);  // no others
    return gradients;
  }
};

/// Under autocast a matrix product of wide operands would be formed in 16 bits.
struct AsTheyAre {
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

/// In the compute format; undefined where x is.
at::Tensor widened(const at::Tensor& x) {
  return x.defined() ? x.to(compute_type(x.scalar_type())) : x;
}

/// The rows of `x` at valid positions, in the compute format: [rows, ...]. No other row is read.
at::Tensor valid_rows(const at::Tensor& x, const at::Tensor& rows) {
  return widened(x.flatten(0, 1).index_select(0, rows));
}

/// Zeros [sequences, tokens, ...] with `values` at `rows`.
at::Tensor at_rows(const at::Tensor& values, const at::Tensor& rows, at::IntArrayRef extents) {
  at::Tensor all = at::zeros(extents, values.options());
  all.flatten(0, 1).index_copy_(0, rows, values);
  return all;
}

}  // namespace

LinearRows::LinearRows(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& rows, double temperature)
    : hidden_(hidden),
      weight_(weight),
      bias_(bias),
      rows_(rows),
      wide_hidden_(valid_rows(hidden, rows)),
      wide_weight_(widened(weight)),
      wide_bias_(widened(bias)),
      temperature_(temperature) {}

at::Tensor LinearRows::logits(const RowChunk& of) const {
  const at::Tensor x = of(wide_hidden_), to_logits = wide_weight_.t();
  return cooled(bias_.defined() ? at::addmm(wide_bias_, x, to_logits) : x.mm(to_logits),
                temperature_);
}

at::Tensor LinearRows::terms(const TermsOf& terms_of) const {
  const AsTheyAre products;
  const at::Tensor terms = at::empty({rows_.size(0)}, wide_hidden_.options());
  for_each_chunk([&](const RowChunk& of) { of(terms).copy_(terms_of(logits(of), of)); });
  return at_rows(terms, rows_, hidden_.sizes().slice(0, 2));
}

std::vector<at::Tensor> LinearRows::form_gradients(const at::Tensor& upstream, bool trained,
                                                   const SlopeOf& slope_of) const {
  const AsTheyAre products;
  const at::NoGradGuard plain;
  const at::Tensor above = valid_rows(upstream, rows_).unsqueeze(-1);
  const at::Tensor by_hidden = at::empty_like(wide_hidden_);
  at::Tensor by_weight, by_bias;
  if (trained) by_weight = at::zeros(weight_.sizes(), wide_weight_.options());
  if (bias_.defined()) by_bias = at::zeros(bias_.sizes(), wide_bias_.options());
  for_each_chunk([&](const RowChunk& of) {
    const at::Tensor g = cooled_gradient(slope_of(logits(of), of(above), of), temperature_);
    of(by_hidden).copy_(g.mm(wide_weight_));
    if (trained) by_weight.addmm_(g.t(), of(wide_hidden_));
    if (bias_.defined()) by_bias.add_(g.sum(0));
  });
  return {at_rows(by_hidden, rows_, hidden_.sizes()).to(hidden_.scalar_type()),
          trained ? by_weight.to(weight_.scalar_type()) : by_weight,
          bias_.defined() ? by_bias.to(bias_.scalar_type()) : by_bias};
}

std::vector<at::Tensor> LinearRows::gradients(const at::Tensor& upstream, bool trained,
                                              const SlopeOf& slope_of) const {
  std::vector<at::Tensor> gradients = form_gradients(upstream, trained, slope_of);
  for (at::Tensor& each : gradients) {
    if (each.defined()) each = once(each);
  }
  return gradients;
}

void LinearRows::for_each_chunk(const std::function<void(const RowChunk&)>& each) const {
  constexpr std::int64_t kChunk = 1024;
  const std::int64_t rows = rows_.size(0);
  for (std::int64_t first = 0; first < rows; first += kChunk) {
    each({first, std::min(kChunk, rows - first)});
  }
}

at::Tensor row_indices(const at::Tensor& valid) {
  // Without data, as many rows as there may be.
  if (valid.is_meta()) return at::empty({valid.numel()}, valid.options().dtype(at::kLong));
  return valid.flatten().nonzero().squeeze(-1);
}

at::Tensor taken_at(const at::Tensor& label, const at::Tensor& rows) {
  return label.flatten().index_select(0, rows).to(at::kLong).unsqueeze(-1);
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

at::Tensor linear_log_prob(const at::Tensor& hidden, const at::Tensor& weight,
                           const at::Tensor& bias, const at::Tensor& label, const at::Tensor& valid,
                           double temperature) {
  return LinearLogProb::apply(hidden, weight, if_defined(bias), label, valid, temperature);
}

}  // namespace lossgate::impl
