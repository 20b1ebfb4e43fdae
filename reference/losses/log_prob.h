// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "reference/losses/entropy.h"
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
/// Error: x - logsumexp(x) rounds at the size of a common offset, and so does the entropy as
///   logsumexp(x) - sum p x, in which the error of the normaliser meets x, not log p; an online
///   maximum that starts at -infinity gives NaN on a leading masked tile; p log p is 0 times
///   -infinity.
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
        .forms = {kShiftedForm, kLogSumExpForm, kEntropyDifferenceForm},
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
    const bool difference = in.form(kEntropyDifferenceForm), undeclared = in.undeclared();
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          log_prob(S(0), s, t);
          entropy(S(0), s, t);
          for (std::int64_t v = 0; v < vocab; ++v) gradient(S(0), s, t, v);
          continue;
        }
        const Row<S> x = read_logits(logits, s, t, vocab, temperature);
        const LogSumExp<S> whole = log_sum_exp(x);
        const Row<S> l = log_softmax(x, whole, softmax_form(in));
        const std::int64_t taken = label.integer(s, t);
        const S w = log_prob_weight(s, t), e = entropy_weight(s, t);
        const Above<S> above{taken, upstream * w, upstream, e, gradient.wanted(), undeclared};
        RowFunction<S> h = difference ? as_difference(x, l, whole, above) : of_log_probs(l, above);
        if (undeclared) widen(h, as_difference(x, l, whole, above));
        log_prob(l[taken], s, t);
        entropy(h.value, s, t);
        loss.add(w * l[taken]);
        loss.add(e * h.value);
        if (!above.wanted) continue;
        if (undeclared) charge_shift(x, h.gradient);
        const bool both = value_of(w) != 0 && value_of(e) != 0;  // 0 is added exactly
        for (std::int64_t v = 0; v < vocab; ++v) {
          const S back = back_to_logits(h.gradient[v], temperature, upstream);
          // Either output may widen the logits by itself, and hands its gradient back as these are.
          const auto of_log_prob = [&] {
            return S((selected<S>(v == taken ? 1.0 : 0.0) - exp(l[v])) * above.log_prob /
                     temperature);
          };
          gradient(in.gradient(both ? stored_apart(Stage::gradient, back, of_log_prob) : back), s,
                   t, v);
        }
      }
    }
    out.loss(loss);
  }

 private:
  /// What comes into a position from above: gradients of the taken token's log-prob and, as a
  /// product, of the entropy; whether anybody asks for those of its logits, and whether the
  /// normaliser may be joined of parts of the row.
  template <class S>
  struct Above {
    std::int64_t taken;
    S log_prob, upstream, entropy_weight;
    bool wanted, joined;
  };

  /// The entropy, with the gradient of both by each logit.
  template <class S>
  static RowFunction<S> of_log_probs(const Row<S>& l, const Above<S>& above) {
    const Row<S> p = probabilities(l, false);
    Sum<S> negative_entropy(l.size());
    for (Eigen::Index v = 0; v < l.size(); ++v) negative_entropy.add(weighed(p[v], l[v]));
    RowFunction<S> h{-negative_entropy.value(), {}};
    if (!above.wanted) return h;
    // Differentiating -sum p l term by term leaves p l + p, of which p sums away.
    const S scale = above.upstream * above.entropy_weight;
    Row<S> g(l.size());
    for (Eigen::Index v = 0; v < l.size(); ++v) {
      g[v] = -(weighed_by(scale, p[v], l[v]) + scale * p[v]);
    }
    // Either slope comes back by itself, and is stored, before they are added.
    g[above.taken] += store(Stage::log_prob, above.log_prob);
    h.gradient = log_softmax_gradient(l, std::move(g), above.joined);
    return h;
  }

  /// The same, each by a backward of its own.
  template <class S>
  static RowFunction<S> as_difference(const Row<S>& x, const Row<S>& l, const LogSumExp<S>& whole,
                                      const Above<S>& above) {
    RowFunction<S> h =
        entropy_as_difference(x, l, whole, above.joined, [&](const Cancelling<S>& slope) {
          return distributed(slope, above.upstream, above.entropy_weight);
        });
    if (!above.wanted) return {h.value, {}};
    Row<S> g = zero_row<S>(l.size());
    g[above.taken] = above.log_prob;
    h.gradient += log_softmax_gradient(l, std::move(g), above.joined);
    return h;
  }
};

}  // namespace lossgate::reference
