// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/linear.h"
#include "impl/torch/step.h"
#include "impl/torch/target_cost.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Costs per position from hidden states, a chunk of positions at a time; the backward forms the
/// chunk's logits again.
struct LinearTargetCost : torch::autograd::Function<LinearTargetCost> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& label, const at::Tensor& valid,
                            double label_smoothing, double z_loss) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor rows = row_indices(valid);
    const at::Tensor taken = label.flatten().index_select(0, rows).to(at::kLong).unsqueeze(-1);
    context->save_for_backward({hidden, weight, bias, rows, taken});
    context->saved_data["label_smoothing"] = label_smoothing;
    context->saved_data["z_loss"] = z_loss;
    const TargetCostOptions options{label_smoothing, z_loss};
    const OutputLayer layer{widened(weight), widened(bias)};
    const at::Tensor inputs = valid_rows(hidden, rows);
    const at::Tensor cost = at::empty({rows.size(0)}, inputs.options());
    for_each_chunk(rows.size(0), [&](std::int64_t first, std::int64_t length) {
      const at::Tensor x = layer.logits(inputs.narrow(0, first, length));
      cost.narrow(0, first, length)
          .copy_(target_cost(x, log_softmax(x), taken.narrow(0, first, length), options));
    });
    return at_rows(cost, rows, valid.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &weight = saved[1], &bias = saved[2], &rows = saved[3],
                     &taken = saved[4];
    const TargetCostOptions options{context->saved_data["label_smoothing"].toDouble(),
                                    context->saved_data["z_loss"].toDouble()};
    const OutputLayer layer{widened(weight), widened(bias)};
    const at::Tensor inputs = valid_rows(hidden, rows);
    const at::Tensor above = valid_rows(upstream[0], rows).unsqueeze(-1);
    LayerGradients gradients(layer, inputs);
    for_each_chunk(rows.size(0), [&](std::int64_t first, std::int64_t length) {
      const at::Tensor some = inputs.narrow(0, first, length), x = layer.logits(some);
      const at::Tensor slope =
          target_cost_slope(x, log_softmax(x), taken.narrow(0, first, length), options);
      gradients.add(layer, some, above.narrow(0, first, length) * slope, first);
    });
    return {at_rows(gradients.hidden, rows, hidden.sizes()).to(hidden.scalar_type()),
            gradients.weight.to(weight.scalar_type()),
            bias.defined() ? gradients.bias.to(bias.scalar_type()) : at::Tensor(),
            {},
            {},
            {},
            {}};
  }
};

std::tuple<at::Tensor, at::Tensor> linear_cross_entropy(
    const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
    const at::Tensor& label, const TargetCostOptions& options, const ReductionPlan& plan) {
  check_layer(hidden, weight, "hidden", "weight");
  check_bias(bias, weight);
  check_target_cost(options);
  const at::Tensor valid = valid_from_labels(label, hidden.sizes().slice(0, 2), weight.size(0));
  const at::Tensor per_token = LinearTargetCost::apply(hidden, weight, bias, label, valid,
                                                       options.label_smoothing, options.z_loss);
  return {reduce(per_token, valid, plan), per_token};
}

std::tuple<at::Tensor, at::Tensor> linear_cross_entropy_operator(
    const at::Tensor& hidden, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& label, std::int64_t total_tokens, c10::string_view reduction,
    double label_smoothing, double z_loss, std::int64_t num_items) {
  return linear_cross_entropy(hidden, weight, bias.value_or(at::Tensor()), label,
                              {.label_smoothing = label_smoothing, .z_loss = z_loss},
                              reduction_plan(reduction, total_tokens, 0, 1, num_items));
}

StepOutputs linear_cross_entropy_step(const StepInputs& in) {
  auto [loss, per_token] =
      linear_cross_entropy(in["hidden"], in["weight"], in["bias"], in["label"],
                           {.label_smoothing = in.spec().number("label_smoothing"),
                            .z_loss = in.spec().number("z_loss")},
                           in.reduction_plan());
  return {
      .loss = loss, .values = {{"per_token", per_token}}, .counts = {{"rows", in.valid_tokens()}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation linear_cross_entropy_implementation() {
  return torch_implementation("linear_cross_entropy",
                              {"impl/torch/linear_cross_entropy.cpp", kLine},
                              linear_cross_entropy_step, std::string(kSoftmaxForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "linear_cross_entropy(Tensor hidden, Tensor weight, Tensor? bias, Tensor label, *, "
      "int total_tokens, str reduction='token_mean', float label_smoothing=0.0, "
      "float z_loss=0.0, int num_items=1) -> (Tensor loss, Tensor per_token)");
  library.impl("linear_cross_entropy", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::linear_cross_entropy_operator));
}
