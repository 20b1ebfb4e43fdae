// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <utility>

#include "reference/losses/entropy.h"
#include "reference/losses/options.h"
#include "reference/losses/row_terms.h"
#include "reference/products.h"

namespace lossgate::reference {

/// The entropy bonus of a policy: a loss that falls as the distribution widens.
///
/// Formula: x[s,t] = -coefficient H, H = -sum_v p[v] log p[v] with p = softmax(logits), reduced
/// over
///   valid positions.
/// Shapes: logits [sequences, tokens, vocab], mask [sequences, tokens]. Units: nats.
/// Gradient: for logits: coefficient p (log p + H); zero where masked.
/// Error: a token of logit -infinity has probability exactly 0, and 0 log 0 = 0: it adds nothing,
///   and its gradient is 0. logsumexp(x) - sum p x rounds at the size of a common offset.
/// Source: Mnih et al. 2016 (arXiv:1602.01783) section 4; verl `compute_entropy_loss` and
///   `entropy_from_logits`; TRL `entropy_from_logits`.
struct EntropyBonus {
  static LossSignature signature() {
    OutputField per_token = per_token_output();
    per_token.range = [](const Case& c) {
      const auto vocab = static_cast<double>(c.shape[Axis::vocab]);
      return std::optional(std::pair(-c.spec.number("coefficient") * std::log(vocab), 0.0));
    };
    return {
        .id = "entropy_bonus",
        .title = "entropy bonus of a policy, from logits",
        .formula = "-coefficient H, H = -sum p log p, p = softmax(x)",
        .source = "arXiv:1602.01783 section 4; verl compute_entropy_loss; TRL entropy_from_logits",
        .forms = {kShiftedForm, kEntropyDifferenceForm},
        .options = {real_option("coefficient", 0.01, 0.0, 1.0, "weight of the entropy"),
                    max_length_option()},
        .fields = {logits_field("logits", Role::differentiable, "of the current policy"),
                   mask_field()},
        .outputs = {std::move(per_token)},
        .reductions = kTokenReductions,
        .reach = {{"|logit|", "logits", ""}},
        .mask = "mask",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto logits = in.field("logits");
    const std::int64_t vocab = in.extent(Axis::vocab);
    const S one = constant<S>(1.0L), coefficient = in.option("coefficient");
    const bool shifted = in.form(kShiftedForm);
    evaluate_by_row(in, out, "logits", [&](const S& weight, std::int64_t s, std::int64_t t, bool) {
      const Row<S> x = read_logits(logits, s, t, vocab, one);
      const LogSumExp<S> whole = log_sum_exp(x);
      const Row<S> l = log_softmax(x, whole, softmax_form(in));
      const auto scaled = [&](const Cancelling<S>& slope) {
        return -distributed(slope, in.upstream(), weight, coefficient);
      };
      RowFunction<S> h = shifted ? entropy_of_log_probs(l, false, scaled)
                                 : entropy_as_difference(x, l, whole, in.undeclared(), scaled);
      if (in.undeclared()) {
        widen(h, entropy_of_log_probs(l, true, scaled));
        charge_shift(x, h.gradient);
      }
      // The entropy may be stored before its coefficient comes.
      const S entropy = h.value, back = product(in.upstream(), weight, coefficient);
      for (S& g : h.gradient) {
        g = store(Stage::logits, stored_within(Stage::per_token, g, back));
      }
      h.value = stored_within(Stage::per_token, S(-product(coefficient, entropy)), entropy);
      const S weighted = -product(weight, coefficient, entropy);
      return RowTerm<S>{std::move(h), stored_within(Stage::per_token, weighted, entropy)};
    });
  }
};

}  // namespace lossgate::reference
