// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/grpo.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The gradient is written out: chained derivatives would multiply the zero of a clip or a mask by
/// what overflowed behind it, and lose small advantages against the upstream gradient first.
struct GrpoTerms : torch::autograd::Function<GrpoTerms> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& log_prob,
                            const at::Tensor& old_log_prob,
                            const std::optional<at::Tensor>& ref_log_prob,
                            const at::Tensor& advantage, const at::Tensor& valid,
                            const PolicyOptions& options) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::ScalarType compute = compute_type(log_prob.scalar_type());
    const auto selected = [&](const at::Tensor& x) { return select(x, valid, compute); };
    const at::Tensor policy = selected(log_prob);
    const PolicyTerms terms =
        policy_terms(policy, selected(old_log_prob),
                     options.kl_penalty == 0.0 ? policy : selected(*ref_log_prob),
                     selected(advantage), valid, options);
    context->save_for_backward(
        {terms.own_slope, terms.weight_slope, terms.row_slope, valid, terms.log_slope});
    context->saved_data["stored"] = log_prob.scalar_type();
    return terms.value;
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &own = saved[0], &weight_slope = saved[1], &row_slope = saved[2];
    at::Tensor gradient;
    if (own.defined()) gradient = upstream[0] * own;
    if (weight_slope.defined()) {
      // Each with the weight before they are added: large advantages may cancel, or be small
      // beside it. A selected zero on either side annihilates what may be infinite on the other.
      const at::Tensor through = upstream[0] * weight_slope;
      const at::Tensor silent = (through == 0).logical_or_(row_slope == 0);
      at::Tensor common = (through * row_slope).masked_fill_(silent, 0).sum(1, /*keepdim=*/true);
      if (saved[4].defined()) common.add_((upstream[0] * saved[4]).sum(1, /*keepdim=*/true));
      // Divided last: a subnormal weight would lose digits.
      common.div_(row_counts(saved[3]).clamp_min_(1));
      const at::Tensor shared = at::where(saved[3], common, 0.0);
      gradient = gradient.defined() ? gradient.add_(shared) : shared;
    }
    return {once(gradient.to(context->saved_data["stored"].toScalarType())), {}, {}, {}, {}, {}};
  }
};

using Optional = std::optional<double>;

std::tuple<at::Tensor, at::Tensor> grpo_operator(
    const at::Tensor& log_prob, const at::Tensor& old_log_prob,
    const std::optional<at::Tensor>& ref_log_prob, const at::Tensor& advantage,
    const at::Tensor& mask, std::int64_t total_tokens, std::int64_t total_sequences,
    c10::string_view reduction, double clip_low, double clip_high, Optional dual_clip,
    Optional log_ratio_clamp, c10::string_view level, double kl_penalty,
    c10::string_view kl_estimator, Optional kl_input_clamp, Optional kl_output_clamp,
    bool kl_weighted, std::int64_t max_length) {
  return grpo(log_prob, old_log_prob, ref_log_prob.value_or(at::Tensor()), advantage, mask,
              {.clip_low = clip_low,
               .clip_high = clip_high,
               .dual_clip = dual_clip,
               .log_ratio_clamp = log_ratio_clamp,
               .sequence_level = parse_level(level),
               .kl_penalty = kl_penalty,
               .kl = {.estimator = parse_kl_estimator(kl_estimator),
                      .input_clamp = kl_input_clamp,
                      .output_clamp = kl_output_clamp,
                      .weighted = kl_weighted}},
              reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs grpo_step(const StepInputs& in) {
  auto [loss, per_token] =
      grpo(in["log_prob"], in["old_log_prob"], in["ref_log_prob"], in["advantage"], in["mask"],
           policy_options(in.spec()), in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

}  // namespace

at::Tensor grpo_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                      const at::Tensor& ref_log_prob, const at::Tensor& advantage,
                      const at::Tensor& valid, const PolicyOptions& options) {
  return GrpoTerms::apply(log_prob, old_log_prob, if_defined(ref_log_prob), advantage, valid,
                          options);
}

std::tuple<at::Tensor, at::Tensor> grpo(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                                        const at::Tensor& ref_log_prob, const at::Tensor& advantage,
                                        const at::Tensor& mask, const PolicyOptions& options,
                                        const ReductionPlan& plan) {
  expect_positions(log_prob, "log_prob");
  expect_like(log_prob, old_log_prob, "old_log_prob");
  expect_like(log_prob, advantage, "advantage");
  check_policy_options(options);
  if (options.kl_penalty != 0.0) {
    TORCH_CHECK(ref_log_prob.defined(), "ref_log_prob is missing, and kl_penalty is not 0");
    expect_like(log_prob, ref_log_prob, "ref_log_prob");
  }
  const at::Tensor valid = valid_from(mask, log_prob.sizes());
  const at::Tensor terms =
      grpo_terms(log_prob, old_log_prob, ref_log_prob, advantage, valid, options);
  return {reduce(terms, valid, plan), terms};
}

constexpr int kLine = __LINE__;

Implementation grpo_implementation() {
  return torch_implementation("grpo", {"impl/torch/grpo.cpp", kLine}, grpo_step,
                              std::string(kClosedK3Form));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "grpo(Tensor log_prob, Tensor old_log_prob, Tensor? ref_log_prob, Tensor advantage, "
      "Tensor mask, *, int total_tokens, int total_sequences, str reduction='token_mean', "
      "float clip_low=0.2, float clip_high=0.2, float? dual_clip=None, "
      "float? log_ratio_clamp=20.0, str level='token', float kl_penalty=0.04, "
      "str kl_estimator='k3', float? kl_input_clamp=20.0, float? kl_output_clamp=10.0, "
      "bool kl_weighted=False, int max_length=16) -> (Tensor loss, Tensor per_token)");
  library.impl("grpo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::grpo_operator));
}
