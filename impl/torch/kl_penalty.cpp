// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/policy_terms.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

struct KlPenaltyOptions {
  KlOptions kl;
  bool straight_through = false;  ///< differentiate k2, unclamped and unweighted, instead
  std::optional<double> log_ratio_clamp = 20.0;
};

/// Of log_prob, ref_log_prob and, where the estimate is weighted, old_log_prob.
TermsAndSlope kl_penalty_terms(const Tensors& f, const KlPenaltyOptions& options) {
  const ImportanceWeight weight = options.kl.weighted
                                      ? importance_weight(f[0] - f[2], options.log_ratio_clamp)
                                      : ImportanceWeight{};
  KlTerms terms = kl_terms(f[0], f[1], weight, options.kl);
  if (options.straight_through) {
    terms.slope = f[0] - f[1];
  } else if (options.kl.weighted) {
    terms.slope.add_(through_weight(terms.weight_slope, weight));
    if (terms.log_weight_slope.defined()) {
      terms.slope.add_(through_log_weight(terms.log_weight_slope, weight));
    }
  }
  return {terms.value, terms.slope};
}

/// old_log_prob may be undefined where the estimate is not weighted.
std::tuple<at::Tensor, at::Tensor> kl_penalty(
    const at::Tensor& log_prob, const at::Tensor& ref_log_prob, const at::Tensor& old_log_prob,
    const at::Tensor& mask, const KlPenaltyOptions& options, const ReductionPlan& plan) {
  check_kl_options(options.kl);
  check_limit(options.log_ratio_clamp, 0.0, "log_ratio_clamp");
  std::vector<PositionField> fields = {{"log_prob", log_prob}, {"ref_log_prob", ref_log_prob}};
  if (options.kl.weighted) fields.push_back({"old_log_prob", old_log_prob});
  return position_loss(fields, mask, plan,
                       [&](const Tensors& f) { return kl_penalty_terms(f, options); });
}

using Optional = std::optional<double>;

std::tuple<at::Tensor, at::Tensor> kl_penalty_operator(
    const at::Tensor& log_prob, const at::Tensor& ref_log_prob,
    const std::optional<at::Tensor>& old_log_prob, const at::Tensor& mask,
    std::int64_t total_tokens, std::int64_t total_sequences, c10::string_view reduction,
    c10::string_view kl_estimator, Optional kl_input_clamp, Optional kl_output_clamp,
    bool kl_weighted, bool kl_straight_through, Optional log_ratio_clamp, std::int64_t max_length) {
  return kl_penalty(log_prob, ref_log_prob, old_log_prob.value_or(at::Tensor()), mask,
                    {.kl = {.estimator = parse_kl_estimator(kl_estimator),
                            .input_clamp = kl_input_clamp,
                            .output_clamp = kl_output_clamp,
                            .weighted = kl_weighted},
                     .straight_through = kl_straight_through,
                     .log_ratio_clamp = log_ratio_clamp},
                    reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs kl_penalty_step(const StepInputs& in) {
  auto [loss, per_token] =
      kl_penalty(in["log_prob"], in["ref_log_prob"], in["old_log_prob"], in["mask"],
                 {.kl = kl_options(in.spec()),
                  .straight_through = in.spec().number("kl_straight_through") != 0.0,
                  .log_ratio_clamp = limit_option(in.spec(), "log_ratio_clamp")},
                 in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation kl_penalty_implementation() {
  return torch_implementation("kl_penalty", {"impl/torch/kl_penalty.cpp", kLine}, kl_penalty_step,
                              std::string(kClosedK3Form));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "kl_penalty(Tensor log_prob, Tensor ref_log_prob, Tensor? old_log_prob, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', str kl_estimator='k3', "
      "float? kl_input_clamp=20.0, float? kl_output_clamp=10.0, bool kl_weighted=False, "
      "bool kl_straight_through=False, float? log_ratio_clamp=20.0, int max_length=16) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("kl_penalty", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::kl_penalty_operator));
}
