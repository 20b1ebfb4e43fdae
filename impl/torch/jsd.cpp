// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Divergences per position from logits. The derivative by log-prob is kept from the forward; the
/// upstream gradient meets it before the softmax's sum does.
struct JsdTerms : torch::autograd::Function<JsdTerms> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& student_logits,
                            const at::Tensor& teacher_logits, const at::Tensor& valid, double beta,
                            double temperature, bool soft) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::ScalarType compute = compute_type(student_logits.scalar_type());
    const auto log_probs = [&](const at::Tensor& logits) {
      return log_softmax(cooled(select(logits, valid, compute), temperature));
    };
    const at::Tensor student = log_probs(student_logits), teacher = log_probs(teacher_logits);
    const Divergence terms = soft && beta == 0.0 ? soft_cross_entropy(student, teacher)
                                                 : jensen_shannon(student, teacher, beta, true);
    const at::Tensor ignored = valid.logical_not();
    context->save_for_backward({student, terms.slope.masked_fill(ignored.unsqueeze(-1), 0)});
    context->saved_data["stored"] = student_logits.scalar_type();
    context->saved_data["temperature"] = temperature;
    return terms.value.masked_fill(ignored, 0);
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor by_logit =
        log_softmax_gradient(saved[0], upstream[0].unsqueeze(-1) * saved[1]);
    return {once(cooled_gradient(by_logit, context->saved_data["temperature"].toDouble())
                     .to(context->saved_data["stored"].toScalarType())),
            {},
            {},
            {},
            {},
            {}};
  }
};

std::tuple<at::Tensor, at::Tensor> jsd(const at::Tensor& student_logits,
                                       const at::Tensor& teacher_logits, const at::Tensor& label,
                                       double beta, double temperature, bool soft,
                                       const ReductionPlan& plan) {
  TORCH_CHECK(student_logits.dim() == 3, "student_logits must be [sequences, tokens, vocab], got ",
              student_logits.sizes());
  expect_like(student_logits, teacher_logits, "teacher_logits");
  check_divergence_options(beta, temperature);
  const at::Tensor valid =
      valid_from_labels(label, student_logits.sizes().slice(0, 2), student_logits.size(2));
  const at::Tensor per_token =
      JsdTerms::apply(student_logits, teacher_logits, valid, beta, temperature, soft);
  return {reduce(per_token, valid, plan), per_token};
}

std::tuple<at::Tensor, at::Tensor> jsd_operator(const at::Tensor& student_logits,
                                                const at::Tensor& teacher_logits,
                                                const at::Tensor& label, std::int64_t total_tokens,
                                                c10::string_view reduction, double beta,
                                                double temperature, std::int64_t num_items,
                                                bool soft_cross_entropy) {
  return jsd(student_logits, teacher_logits, label, beta, temperature, soft_cross_entropy,
             reduction_plan(reduction, {.total_tokens = total_tokens, .num_items = num_items}));
}

StepOutputs jsd_step(const StepInputs& in) {
  auto [loss, per_token] = jsd(in["student_logits"], in["teacher_logits"], in["label"],
                               in.spec().number("beta"), in.spec().number("temperature"),
                               in.spec().number("soft_cross_entropy") != 0.0, in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation jsd_implementation() {
  return torch_implementation("jsd", {"impl/torch/jsd.cpp", kLine}, jsd_step,
                              std::string(kDivergenceForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "jsd(Tensor student_logits, Tensor teacher_logits, Tensor label, *, int total_tokens, "
      "str reduction='token_mean', float beta=0.5, float temperature=1.0, int num_items=1, "
      "bool soft_cross_entropy=False) -> (Tensor loss, Tensor per_token)");
  library.impl("jsd", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::jsd_operator));
}
