// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/linear.h"
#include "reference/losses/target_cost.h"

namespace lossgate::reference {

/// Cross-entropy from hidden states, the output layer fused into the loss.
///
/// Formula: as CrossEntropy with logits = hidden weight^T + bias.
/// Shapes: hidden [sequences, tokens, hidden], weight [vocab, hidden], bias [vocab], label
///   [sequences, tokens]. Units: nats.
/// Gradient: for hidden, weight and bias: the transposes of the layer, of the gradient by logits.
///   Hidden rows are zero where masked.
/// Error: as CrossEntropy; the weight gradient must accumulate in more than 16 bits.
/// Source: Liger `ops/fused_linear_cross_entropy.py`; apple/ml-cross-entropy (arXiv:2411.09009);
///   torchtune `LinearCrossEntropyLoss`; unsloth-zoo `fused_losses/cross_entropy_loss.py`.
struct LinearCrossEntropy {
  static LossSignature signature() {
    return {
        .id = "linear_cross_entropy",
        .title = "cross-entropy from hidden states, output layer fused",
        .formula = "CrossEntropy of hidden weight^T + bias",
        .source = "Liger ops/fused_linear_cross_entropy.py; arXiv:2411.09009",
        .forms = {kShiftedForm, kDifferenceForm},
        .options = target_cost_options(),
        .fields = {hidden_field("hidden", Role::differentiable, "before the output layer"),
                   weight_field("weight", Role::differentiable, "of the output layer"),
                   bias_field(), label_field("the token to predict")},
        .outputs = {non_negative_per_token_output()},
        .reductions = {Reduction::token_mean, Reduction::sum_over_items, Reduction::sum},
        .reach = {{"|hidden|", "hidden", ""}},
        .ignore_label = "label",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto label = in.field("label");
    const TargetCost<S> cost(in, TargetCost<S>::Logits::computed);
    const OutputLayer<S> layer(in, {"hidden", "weight", "bias"}, constant<S>(1.0L));
    evaluate_by_hidden(
        in, out, layer,
        [&](const Row<S>& logits, const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
          return cost(logits, label.integer(s, t), weight, wanted);
        });
  }
};

}  // namespace lossgate::reference
