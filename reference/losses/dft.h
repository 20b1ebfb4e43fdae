// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <utility>

#include "reference/losses/options.h"
#include "reference/losses/row_terms.h"
#include "reference/products.h"

namespace lossgate::reference {

/// Dynamic fine-tuning: the cross-entropy of each label under the probability that the model gives
/// it.
///
/// Formula: with l = log_softmax(logits), x[s,t] = -p l[label], where p = exp(l[label]) is a
///   constant to the gradient, reduced over positions whose label is not -100.
/// Shapes: logits [sequences, tokens, vocab], label [sequences, tokens]. Units: nats.
/// Gradient: for logits: p (softmax(logits) - delta_label); zero where masked.
/// Error: a label of logit -infinity has probability exactly 0, and 0 log 0 = 0: its term and its
///   gradient are 0, where a product of both is 0 times -infinity. The log-prob of one that is far
///   below is a number, though its probability underflows: so is its term, while the logarithm of
///   that probability is not. Of a gradient through p, p (1 + l) is left, which has the other sign
///   below p = 1 / e.
/// Source: Wu et al. 2025 (arXiv:2508.05629) eq. 9; TRL `SFTTrainer` (loss_type "dft"); ms-swift
///   `per_token_loss_func` (enable_dft_loss); LLaMA-Factory `dft_loss_func`.
struct Dft {
  static LossSignature signature() {
    OutputField per_token = per_token_output();
    per_token.range = [](const Case&) { return std::optional(std::pair(0.0, std::exp(-1.0))); };
    return {
        .id = "dft",
        .title = "dynamic fine-tuning: cross-entropy under the label's own probability, detached",
        .formula = "-detach(exp(l[label])) l[label], l = log_softmax(x)",
        .source = "arXiv:2508.05629 eq. 9; TRL SFTTrainer; ms-swift; LLaMA-Factory",
        .forms = {kShiftedForm, kLogSumExpForm},
        .options = {num_items_option()},
        .fields = {logits_field("logits", Role::differentiable, "of the model"),
                   label_field("the token to predict")},
        .outputs = {std::move(per_token)},
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
    evaluate_by_row(
        in, out, "logits", [&](const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
          const Row<S> x = read_logits(logits, s, t, vocab, one);
          const Row<S> l = log_softmax(x, softmax_form(in));
          const std::int64_t taken = label.integer(s, t);
          // What is made of a log-prob that is stored has its format.
          const S p = stop_gradient(store(Stage::log_prob, probability(l[taken], in.undeclared()))),
                  cost = -l[taken];
          // The cost may be stored before its probability comes; an infinite one is what it was.
          const auto stored = [&](const S& whole) {
            const bool counts = value_of(cost) < HUGE_VAL;
            return counts ? stored_within(Stage::per_token, whole, cost) : whole;
          };
          RowTerm<S> term{{stored(weighed(p, cost)), {}}, stored(weighed_by(weight, p, cost))};
          if (!wanted) return term;
          const S back = product(in.upstream(), weight, p);
          term.gradient = gradient(in, l, taken, back);
          if (in.undeclared()) charge_shift(x, term.gradient);
          for (S& g : term.gradient) {
            g = store(Stage::logits, stored_within(Stage::per_token, g, back));
          }
          return term;
        });
  }

 private:
  /// `back` (softmax - delta_label): the label's own, where no form says how, may be a product with
  /// p - 1.
  template <class S>
  static Row<S> gradient(const Inputs<S>& in, const Row<S>& l, std::int64_t taken, const S& back) {
    Row<S> slope = zero_row<S>(l.size());
    slope[taken] = -back;
    Row<S> result = log_softmax_gradient(l, std::move(slope), in.undeclared());
    if (in.undeclared()) {
      const S excess = probability(l[taken], true) - constant<S>(1.0L);
      result[taken] = wider(result[taken], S(back * excess));
    }
    return result;
  }
};

}  // namespace lossgate::reference
