// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/linear.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Divergences per position from hidden states, a chunk of positions at a time; the backward forms
/// the chunk's logits again.
struct LinearJsdTerms : torch::autograd::Function<LinearJsdTerms> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& student_hidden,
                            const at::Tensor& student_weight, const at::Tensor& teacher_hidden,
                            const at::Tensor& teacher_weight, const at::Tensor& valid, double beta,
                            double temperature) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor rows = row_indices(valid);
    context->save_for_backward(
        {student_hidden, student_weight, teacher_hidden, teacher_weight, rows});
    context->saved_data["beta"] = beta;
    context->saved_data["temperature"] = temperature;
    const Chunks chunks(student_hidden, student_weight, teacher_hidden, teacher_weight, rows, beta,
                        temperature);
    const at::Tensor value = at::empty({rows.size(0)}, chunks.student_rows.options());
    for_each_chunk(rows.size(0), [&](std::int64_t first, std::int64_t length) {
      value.narrow(0, first, length).copy_(chunks.at(first, length).second.value);
    });
    return at_rows(value, rows, valid.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &student_hidden = saved[0], &student_weight = saved[1], &rows = saved[4];
    const Chunks chunks(student_hidden, student_weight, saved[2], saved[3], rows,
                        context->saved_data["beta"].toDouble(),
                        context->saved_data["temperature"].toDouble());
    const at::Tensor slope = valid_rows(upstream[0], rows).unsqueeze(-1);
    LayerGradients gradients(chunks.student, chunks.student_rows);
    for_each_chunk(rows.size(0), [&](std::int64_t first, std::int64_t length) {
      const auto [log_prob, terms] = chunks.at(first, length);
      const at::Tensor by_log_prob = slope.narrow(0, first, length) * terms.slope;
      gradients.add(chunks.student, chunks.student_rows.narrow(0, first, length),
                    log_softmax_gradient(log_prob, by_log_prob), first);
    });
    return {
        at_rows(gradients.hidden, rows, student_hidden.sizes()).to(student_hidden.scalar_type()),
        gradients.weight.to(student_weight.scalar_type()),
        {},
        {},
        {},
        {},
        {}};
  }

 private:
  struct Chunks {
    OutputLayer student, teacher;
    at::Tensor student_rows, teacher_rows;
    double beta;

    Chunks(const at::Tensor& student_hidden, const at::Tensor& student_weight,
           const at::Tensor& teacher_hidden, const at::Tensor& teacher_weight,
           const at::Tensor& rows, double beta_in, double temperature)
        : student{widened(student_weight), {}, temperature},
          teacher{widened(teacher_weight), {}, temperature},
          student_rows(valid_rows(student_hidden, rows)),
          teacher_rows(valid_rows(teacher_hidden, rows)),
          beta(beta_in) {}

    /// The student's log-probs and the divergence of the rows that begin at `first`.
    std::pair<at::Tensor, Divergence> at(std::int64_t first, std::int64_t length) const {
      const at::Tensor p = log_softmax(student.logits(student_rows.narrow(0, first, length)));
      const at::Tensor q = log_softmax(teacher.logits(teacher_rows.narrow(0, first, length)));
      return {p, jensen_shannon(p, q, beta, true)};
    }
  };
};

std::tuple<at::Tensor, at::Tensor> linear_jsd(const at::Tensor& student_hidden,
                                              const at::Tensor& student_weight,
                                              const at::Tensor& teacher_hidden,
                                              const at::Tensor& teacher_weight,
                                              const at::Tensor& label, double beta,
                                              double temperature, const ReductionPlan& plan) {
  check_layer(student_hidden, student_weight, "student_hidden", "student_weight");
  check_layer(teacher_hidden, teacher_weight, "teacher_hidden", "teacher_weight");
  TORCH_CHECK(student_weight.size(0) == teacher_weight.size(0), "teacher_weight has ",
              teacher_weight.size(0), " rows, student_weight ", student_weight.size(0));
  TORCH_CHECK(student_hidden.sizes().slice(0, 2) == teacher_hidden.sizes().slice(0, 2),
              "teacher_hidden has shape ", teacher_hidden.sizes(), ", student_hidden ",
              student_hidden.sizes());
  check_divergence_options(beta, temperature);
  const at::Tensor valid =
      valid_from_labels(label, student_hidden.sizes().slice(0, 2), student_weight.size(0));
  const at::Tensor per_token = LinearJsdTerms::apply(student_hidden, student_weight, teacher_hidden,
                                                     teacher_weight, valid, beta, temperature);
  return {reduce(per_token, valid, plan), per_token};
}

std::tuple<at::Tensor, at::Tensor> linear_jsd_operator(
    const at::Tensor& student_hidden, const at::Tensor& student_weight,
    const at::Tensor& teacher_hidden, const at::Tensor& teacher_weight, const at::Tensor& label,
    std::int64_t total_tokens, c10::string_view reduction, double beta, double temperature,
    std::int64_t num_items) {
  return linear_jsd(student_hidden, student_weight, teacher_hidden, teacher_weight, label, beta,
                    temperature, reduction_plan(reduction, total_tokens, 0, 1, num_items));
}

StepOutputs linear_jsd_step(const StepInputs& in) {
  auto [loss, per_token] = linear_jsd(
      in["student_hidden"], in["student_weight"], in["teacher_hidden"], in["teacher_weight"],
      in["label"], in.spec().number("beta"), in.spec().number("temperature"), in.reduction_plan());
  return {
      .loss = loss, .values = {{"per_token", per_token}}, .counts = {{"rows", in.valid_tokens()}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation linear_jsd_implementation() {
  return torch_implementation("linear_jsd", {"impl/torch/linear_jsd.cpp", kLine}, linear_jsd_step,
                              std::string(kDivergenceForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "linear_jsd(Tensor student_hidden, Tensor student_weight, Tensor teacher_hidden, "
      "Tensor teacher_weight, Tensor label, *, int total_tokens, str reduction='token_mean', "
      "float beta=0.5, float temperature=1.0, int num_items=1) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("linear_jsd", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::linear_jsd_operator));
}
