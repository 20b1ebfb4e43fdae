// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "reference/losses/jsd.h"
#include "reference/losses/linear.h"

namespace lossgate::reference {

/// Distillation from hidden states, both output layers fused into the divergence.
///
/// Formula: as Jsd with student_logits = student_hidden student_weight^T and teacher_logits =
///   teacher_hidden teacher_weight^T.
/// Shapes: hidden states [sequences, tokens, hidden], weights [vocab, hidden], label
///   [sequences, tokens]. Units: nats.
/// Gradient: for student_hidden and student_weight. Hidden rows are zero where masked.
/// Error: as Jsd; the weight gradient must accumulate in more than 16 bits.
/// Source: Liger `chunked_loss/jsd_loss.py`; TRL `_chunked_divergence_loss`.
struct LinearJsd {
  static LossSignature signature() {
    return {
        .id = "linear_jsd",
        .title = "generalised Jensen-Shannon divergence from hidden states, output layers fused",
        .formula = "Jsd of student_hidden student_weight^T, teacher_hidden teacher_weight^T",
        .source = "Liger chunked_loss/jsd_loss.py; TRL _chunked_divergence_loss",
        .forms = softmax_divergence_forms(),
        .options = jsd_options(),
        .fields = {hidden_field("student_hidden", Role::differentiable, "of the student"),
                   weight_field("student_weight", Role::differentiable, "its output layer"),
                   hidden_field("teacher_hidden", Role::constant, "of the teacher"),
                   weight_field("teacher_weight", Role::constant, "its output layer"),
                   label_field("only tells which positions count")},
        .outputs = {per_token_output()},
        .reductions = {Reduction::token_mean, Reduction::sum_over_items, Reduction::sum},
        .reach = {{"|student_hidden|", "student_hidden", ""},
                  {"|teacher_hidden|", "teacher_hidden", ""}},
        .ignore_label = "label",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const SoftmaxForm form = softmax_form(in);
    const S temperature = in.option("temperature");
    const OutputLayer<S> student(in, {"student_hidden", "student_weight"}, temperature),
        teacher(in, {"teacher_hidden", "teacher_weight"}, temperature);
    evaluate_by_hidden(
        in, out, student,
        [&](Row<S> logits, const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
          const Softmax<S> p = softmax(std::move(logits), form),
                           q = softmax(teacher.logits(s, t), form);
          return softmax_divergence(in, p, q, false, in.upstream() * weight, wanted);
        });
  }
};

}  // namespace lossgate::reference
