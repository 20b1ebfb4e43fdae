// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "reference/losses/options.h"
#include "reference/rows.h"

namespace lossgate::reference {

/// Log-prob of the taken token, and entropy, from logits.
///
/// Formula: with l = log_softmax(logits / temperature) over the vocabulary, log_prob = l[label],
///   entropy = -sum_v exp(l[v]) l[v]; loss = sum over valid positions of
///   log_prob_weight * log_prob + entropy_weight * entropy, so that the weights are the gradients
///   coming from above.
/// Shapes: logits [sequences, tokens, vocab], the others [sequences, tokens]; label -100 masks.
/// Units: nats.
/// Gradient: for logits: (w (delta_label - p) - e p (l + entropy)) / temperature. Zero rows where
///   masked. A logit of -infinity has probability exactly 0, and 0 log 0 = 0.
/// Error: x - logsumexp(x) rounds at the size of a common offset; an online maximum that starts at
///   -infinity gives NaN on a leading masked tile; p log p is 0 times -infinity.
/// Source: Liger `_selective_logprob_forward`, TRL `selective_log_softmax`, verl
///   `entropy_from_logits`.
struct LogProb {
  static LossSignature signature() {
    const auto weight = [](std::string name, std::string doc) {
      return Field{.name = std::move(name),
                   .role = Role::weight,
                   .quantity = Quantity::upstream,
                   .axes = {Axis::sequences, Axis::tokens},
                   .infinity = Infinity::surfaces,
                   .doc = std::move(doc)};
    };
    return {
        .id = "log_prob",
        .title = "selected log-prob and entropy from logits",
        .formula = "log_prob = log_softmax(logits / temperature)[label], entropy = -sum p log p",
        .source = "Liger _selective_logprob_forward; TRL selective_log_softmax",
        .forms = {kShiftedForm, kLogSumExpForm},
        .options = {temperature_option()},
        .fields = {logits_field("logits", Role::differentiable, "of the current policy"),
                   label_field("the taken token"),
                   weight("log_prob_weight", "gradient coming into log_prob"),
                   weight("entropy_weight", "gradient coming into entropy")},
        .outputs = {{.name = "log_prob",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "of the taken token; 0 where masked",
                     .range =
                         [](const Case&) {
                           return std::optional(
                               std::pair(-std::numeric_limits<double>::infinity(), 0.0));
                         }},
                    {.name = "entropy",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "of the distribution; 0 where masked",
                     .range =
                         [](const Case& c) {
                           const auto vocab = static_cast<double>(c.shape[Axis::vocab]);
                           return std::optional(std::pair(0.0, std::log(vocab)));
                         }}},
        .reductions = {Reduction::sum},
        .reach = {{"|logit|", "logits", ""}},
        .ignore_label = "label",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto logits = in.field("logits"), label = in.field("label"),
               log_prob_weight = in.field("log_prob_weight"),
               entropy_weight = in.field("entropy_weight");
    const auto log_prob = out.writer("log_prob"), entropy = out.writer("entropy"),
               gradient = out.gradient("logits");
    const std::int64_t vocab = in.extent(Axis::vocab);
    const S temperature = in.option("temperature"), upstream = in.upstream();
    const bool shifted = in.form(kShiftedForm);
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          log_prob(S(0), s, t);
          entropy(S(0), s, t);
          for (std::int64_t v = 0; v < vocab; ++v) gradient(S(0), s, t, v);
          continue;
        }
        const Row<S> l = log_softmax(read_logits(logits, s, t, vocab, temperature), shifted);
        const Row<S> p = probabilities(l);
        Sum<S> negative_entropy(vocab);
        for (std::int64_t v = 0; v < vocab; ++v) negative_entropy.add(weighed(p[v], l[v]));
        const S h = -negative_entropy.value();
        const std::int64_t taken = label.integer(s, t);
        const S w = log_prob_weight(s, t), e = entropy_weight(s, t);
        log_prob(l[taken], s, t);
        entropy(h, s, t);
        loss.add(w * l[taken]);
        loss.add(e * h);
        if (!gradient.wanted()) continue;
        // Differentiating -sum p l term by term leaves p l + p, of which p sums away.
        Row<S> g(vocab);
        for (std::int64_t v = 0; v < vocab; ++v) {
          g[v] = -(weighed_by(upstream * e, p[v], l[v]) + upstream * e * p[v]);
        }
        g[taken] += upstream * w;
        const Row<S> whole = log_softmax_gradient_at(p, g);
        for (std::int64_t v = 0; v < vocab; ++v) {
          gradient(store(Stage::gradient, whole[v] / temperature), s, t, v);
        }
      }
    }
    out.loss(loss);
  }
};

}  // namespace lossgate::reference
