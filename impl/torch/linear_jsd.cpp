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
    const LinearRows student(student_hidden, student_weight, {}, rows, temperature),
        teacher(teacher_hidden, teacher_weight, {}, rows, temperature);
    return student.terms([&](const at::Tensor& logits, const RowChunk& of) {
      return divergence(log_softmax(logits), teacher.logits(of), beta).value;
    });
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const double beta = context->saved_data["beta"].toDouble(),
                 temperature = context->saved_data["temperature"].toDouble();
    const LinearRows student(saved[0], saved[1], {}, saved[4], temperature),
        teacher(saved[2], saved[3], {}, saved[4], temperature);
    variable_list gradients =
        student.gradients(upstream[0], context->needs_input_grad(1),
                          [&](const at::Tensor& logits, const at::Tensor& g, const RowChunk& of) {
                            const at::Tensor log_prob = log_softmax(logits);
                            return log_softmax_gradient(
                                log_prob, g * divergence(log_prob, teacher.logits(of), beta).slope);
                          });
    gradients.resize(7);  // no others
    return gradients;
  }

 private:
  static Divergence divergence(const at::Tensor& log_prob, const at::Tensor& teacher_logits,
                               double beta) {
    return jensen_shannon(log_prob, log_softmax(teacher_logits), beta, true);
  }
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
  return linear_jsd(
      student_hidden, student_weight, teacher_hidden, teacher_weight, label, beta, temperature,
      reduction_plan(reduction, {.total_tokens = total_tokens, .num_items = num_items}));
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
