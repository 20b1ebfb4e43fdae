// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/linear.h"
#include "reference/losses/policy_objective.h"

namespace lossgate::reference {

/// GRPO from hidden states, the output layer fused into the loss.
///
/// Formula: logits = (hidden weight^T + bias) / temperature, log_prob = log_softmax(logits)[label],
///   then as Grpo.
/// Shapes: hidden [sequences, tokens, hidden], weight [vocab, hidden], bias [vocab], label and the
///   rest [sequences, tokens]. Units: nats.
/// Gradient: for hidden, weight and bias: with d the gradient by log_prob, d (delta_label - p) /
///   temperature by logit, then the transposes of the layer. Hidden rows are zero where masked.
/// Error: as Grpo; the weight gradient must accumulate in more than 16 bits.
/// Source: Liger `chunked_loss/grpo_loss.py`; the clamps are those of NVIDIA-NeMo/RL
///   `calculate_kl`.
struct LinearGrpo {
  static LossSignature signature() {
    std::vector<Option> options = policy_options();
    options.push_back(temperature_option());
    return {
        .id = "linear_grpo",
        .title = "GRPO from hidden states, output layer fused",
        .formula = "Grpo of log_softmax((hidden weight^T + bias) / temperature)[label]",
        .source = "Liger chunked_loss/grpo_loss.py; arXiv:2402.03300",
        .forms = joined_forms(kK3Forms, {kShiftedForm, kLogSumExpForm}),
        .options = std::move(options),
        .fields = {hidden_field("hidden", Role::differentiable, "before the output layer"),
                   weight_field("weight", Role::differentiable, "of the output layer"),
                   bias_field(), label_field("the taken token"), old_log_prob_field(),
                   log_prob_field("ref_log_prob", Role::constant, "reference policy"),
                   advantage_field()},
        .outputs = {per_token_output()},
        .reductions = kTokenReductions,
        .reach = {{"|hidden|", "hidden", ""},
                  {"|old_log_prob|", "old_log_prob", ""},
                  {"|ref_log_prob|", "ref_log_prob", ""}},
        .ignore_label = "label",
        .advantage = "advantage",
        .coefficient = "kl_penalty",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const PolicyObjective<S> objective(in, out, false);
    const FieldReader<S> label = in.field("label");
    const SoftmaxForm form = softmax_form(in);
    const OutputLayer<S> layer(in, {"hidden", "weight", "bias"}, in.option("temperature"));
    LayerGradients<S> gradients(in, out, layer);
    PolicySums<S> sums(in);
    std::vector<S> log_prob(static_cast<std::size_t>(in.tokens()), S(0)), slope;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) continue;
        const Row<S> l = log_softmax(layer.logits(s, t), form);
        log_prob[static_cast<std::size_t>(t)] = l[label.integer(s, t)];
      }
      objective.row(s, log_prob, sums, slope);
      if (!gradients.wanted()) continue;
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          gradients.masked(s, t);
          continue;
        }
        const Row<S> x = layer.logits(s, t), l = log_softmax(x, form);
        Row<S> g = zero_row<S>(l.size());
        g[label.integer(s, t)] = slope[static_cast<std::size_t>(t)];
        Row<S> by_logit = log_softmax_gradient(l, std::move(g), in.undeclared());
        if (in.undeclared()) charge_shift(x, by_logit);
        gradients.back(by_logit, s, t);
      }
    }
    gradients.write();
    objective.write_loss(out, sums);
  }
};

}  // namespace lossgate::reference
