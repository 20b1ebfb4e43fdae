// SPDX-License-Identifier: Apache-2.0
#pragma once

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
    const auto per_token = out.writer("per_token"), write_hidden = out.gradient("student_hidden"),
               write_weight = out.gradient("student_weight");
    const bool shifted = in.form(kShiftedForm);
    OutputLayer<S> student(in, "student_hidden", "student_weight", "");
    const OutputLayer<S> teacher(in, "teacher_hidden", "teacher_weight", "");
    const bool wanted = write_hidden.wanted() || write_weight.wanted();
    if (wanted) student.start_gradients();
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          per_token(S(0), s, t);
          for (std::int64_t h = 0; h < in.extent(Axis::hidden); ++h) write_hidden(S(0), s, t, h);
          continue;
        }
        const S weight = in.token_weight(s), scale = in.upstream() * weight;
        const Softmax<S> p = softmax(student.logits(s, t), shifted),
                         q = softmax(teacher.logits(s, t), shifted);
        const RowFunction<S> d = softmax_divergence(in, p, q, false, scale, wanted);
        per_token(store(Stage::per_token, d.value), s, t);
        loss.add(weight * d.value);
        if (wanted) student.back(d.gradient, s, t, write_hidden);
      }
    }
    if (wanted) student.write_weight_gradient(write_weight);
    out.loss(loss);
  }
};

}  // namespace lossgate::reference
