// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "reference/losses/options.h"
#include "reference/losses/row_terms.h"
#include "reference/losses/target_cost.h"

namespace lossgate::reference {

/// Cross-entropy of supervised fine-tuning, with label smoothing and z-loss.
///
/// Formula: with l = log_softmax(logits) and a = label_smoothing,
///   x[s,t] = -(1 - a) l[label] - a / V sum_v l[v] + z_loss logsumexp(logits)^2, reduced over
///   positions whose label is not -100.
/// Shapes: logits [sequences, tokens, vocab], label [sequences, tokens]. Units: nats.
/// Gradient: for logits: p (1 + 2 z_loss logsumexp) - a / V - (1 - a) delta_label; zero where
///   masked.
/// Error: a taken token of logit -infinity costs infinity, and so does, where a > 0, any token: the
///   smoothing is over the whole vocabulary. The gradient stays finite. With a = 0 the others are
///   not looked at. Where the average logit is subtracted from logsumexp(x), a common offset is
///   rounded as often as there are tokens.
/// Source: PyTorch `cross_entropy` (ignore_index, label_smoothing); transformers
///   `ForCausalLMLoss`; Liger `ops/cross_entropy.py` (lse_square_scale); PaLM (arXiv:2204.02311)
///   section 5.
struct CrossEntropy {
  static LossSignature signature() {
    return {
        .id = "cross_entropy",
        .title = "cross-entropy with label smoothing and z-loss",
        .formula = "-(1 - a) l[label] - a / V sum l + z_loss logsumexp(x)^2, l = log_softmax(x)",
        .source = "PyTorch cross_entropy; transformers ForCausalLMLoss; Liger ops/cross_entropy.py",
        .forms = {kShiftedForm, kDifferenceForm},
        .options = target_cost_options(),
        .fields = {logits_field("logits", Role::differentiable, "of the model"),
                   label_field("the token to predict")},
        .outputs = {non_negative_per_token_output()},
        .reductions = {Reduction::token_mean, Reduction::sum_over_items, Reduction::sum},
        .reach = {{"|logit|", "logits", ""}},
        .ignore_label = "label",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto logits = in.field("logits"), label = in.field("label");
    const std::int64_t vocab = in.extent(Axis::vocab);
    const S one = constant<S>(1.0L);
    const TargetCost<S> cost(in, TargetCost<S>::Logits::a_field);
    evaluate_by_row(in, out, "logits",
                    [&](const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
                      const Row<S> x = read_logits(logits, s, t, vocab, one);
                      RowFunction<S> term = cost(x, label.integer(s, t), weight, wanted);
                      for (S& g : term.gradient) g = store(Stage::logits, g);
                      return weighted_by(weight, std::move(term));
                    });
  }
};

}  // namespace lossgate::reference
