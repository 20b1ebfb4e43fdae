// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "reference/losses/options.h"
#include "reference/losses/row_terms.h"
#include "reference/losses/softmax_divergence.h"

namespace lossgate::reference {

inline std::vector<Option> jsd_options() {
  return {real_option("beta", 0.5, 0.0, 1.0, "0: forward KL, 1: reverse KL, between: mixture"),
          temperature_option(), num_items_option()};
}

/// What trainers call the forward KL is often this: the same gradient, another value.
inline Option soft_cross_entropy_option() {
  return flag_option("soft_cross_entropy",
                     "at beta 0 leave out the teacher's entropy: -sum q log p");
}

/// Distillation by the generalised Jensen-Shannon divergence over the full vocabulary.
///
/// Formula: jensen_shannon(log_softmax(student_logits / T), log_softmax(teacher_logits / T), beta),
///   reduced over positions whose label is not -100 (token_mean is "batchmean"). At beta = 0 with
///   soft_cross_entropy the teacher's entropy, a constant, is left out.
/// Shapes: logits [sequences, tokens, vocab], label [sequences, tokens]. Units: nats.
/// Gradient: for student_logits: (g - p sum g) / T with g the slope by log-prob. Zero where masked.
/// Error: where both log-probs underflow, log(beta q + (1 - beta) p) is log 0; a logit of -infinity
///   in both distributions gives 0 (inf - inf).
/// Source: Agarwal et al. 2024 (arXiv:2306.13649); TRL `GKDTrainer.generalized_jsd_loss`
///   (huggingface/trl#5407); Liger `ops/jsd.py`; the cross-entropy: torchtune `ForwardKLLoss`.
struct Jsd {
  static LossSignature signature() {
    return {
        .id = "jsd",
        .title = "generalised Jensen-Shannon divergence over the vocabulary",
        .formula =
            "beta KL(q || m) + (1 - beta) KL(p || m), m = beta q + (1 - beta) p; ends: KL, "
            "or -sum q log p",
        .source = "arXiv:2306.13649; huggingface/trl#5407",
        .forms = softmax_divergence_forms(),
        .options = options(),
        .fields = {logits_field("student_logits", Role::differentiable, "p"),
                   logits_field("teacher_logits", Role::constant, "q"),
                   label_field("only tells which positions count")},
        .outputs = {non_negative_per_token_output()},
        .reductions = {Reduction::token_mean, Reduction::sum_over_items, Reduction::sum},
        .reach = {{"logit distance", "teacher_logits", "student_logits"},
                  {"|logit|", "student_logits", ""}},
        .ignore_label = "label",
    };
  }

  static std::vector<Option> options() {
    std::vector<Option> all = jsd_options();
    all.push_back(soft_cross_entropy_option());
    return all;
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto student = in.field("student_logits"), teacher = in.field("teacher_logits");
    const std::int64_t vocab = in.extent(Axis::vocab);
    const S temperature = in.option("temperature"), upstream = in.upstream();
    const SoftmaxForm form = softmax_form(in);
    const bool soft =
        in.spec().number("beta") == 0.0 && in.spec().number("soft_cross_entropy") != 0.0;
    evaluate_by_row(
        in, out, "student_logits",
        [&](const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
          const Softmax<S> p = softmax(read_logits(student, s, t, vocab, temperature), form),
                           q = softmax(read_logits(teacher, s, t, vocab, temperature), form);
          RowFunction<S> d = softmax_divergence(in, p, q, soft, upstream * weight, wanted);
          for (S& slope : d.gradient) slope = back_to_logits(slope, temperature, upstream);
          return weighted_by(weight, std::move(d));
        });
  }
};

}  // namespace lossgate::reference
