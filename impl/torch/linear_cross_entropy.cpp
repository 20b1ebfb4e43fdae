// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/linear.h"
#include "impl/torch/slope.h"
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
                            const at::Tensor& weight, const std::optional<at::Tensor>& some_bias,
                            const at::Tensor& label, const at::Tensor& valid,
                            double label_smoothing, double z_loss) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor bias = some_bias.value_or(at::Tensor());
    const at::Tensor rows = row_indices(valid), taken = taken_at(label, rows);
    context->save_for_backward({hidden, weight, bias, rows, taken});
    context->saved_data["label_smoothing"] = label_smoothing;
    context->saved_data["z_loss"] = z_loss;
    return LinearRows(hidden, weight, bias, rows, 1.0)
        .terms([&](const at::Tensor& x, const RowChunk& of) {
          return target_cost(x, log_softmax(x), of(taken), {label_smoothing, z_loss});
        });
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& taken = saved[4];
    const TargetCostOptions options{context->saved_data["label_smoothing"].toDouble(),
                                    context->saved_data["z_loss"].toDouble()};
    const LinearRows rows(saved[0], saved[1], saved[2], saved[3], 1.0);
    variable_list gradients =
        rows.gradients(upstream[0], context->needs_input_grad(1),
                       [&](const at::Tensor& x, const at::Tensor& g, const RowChunk& of) {
                         return g * target_cost_slope(x, log_softmax(x), of(taken), options);
                       });
    gradients.resize(7);  // no others
    return gradients;
  }
};

std::tuple<at::Tensor, at::Tensor> linear_cross_entropy(
    const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
    const at::Tensor& label, const TargetCostOptions& options, const ReductionPlan& plan) {
  check_layer(hidden, weight, "hidden", "weight");
  check_bias(bias, weight);
  check_target_cost(options);
  const at::Tensor valid = valid_from_labels(label, hidden.sizes().slice(0, 2), weight.size(0));
  const at::Tensor per_token = LinearTargetCost::apply(
      hidden, weight, if_defined(bias), label, valid, options.label_smoothing, options.z_loss);
  return {reduce(per_token, valid, plan), per_token};
}

std::tuple<at::Tensor, at::Tensor> linear_cross_entropy_operator(
    const at::Tensor& hidden, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& label, std::int64_t total_tokens, c10::string_view reduction,
    double label_smoothing, double z_loss, std::int64_t num_items) {
  return linear_cross_entropy(
      hidden, weight, bias.value_or(at::Tensor()), label,
      {.label_smoothing = label_smoothing, .z_loss = z_loss},
      reduction_plan(reduction, {.total_tokens = total_tokens, .num_items = num_items}));
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
