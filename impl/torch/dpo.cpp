// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

enum class DpoType { sigmoid, hinge, ipo };

DpoType parse_dpo_type(c10::string_view name) {
  if (name == "sigmoid") return DpoType::sigmoid;
  if (name == "hinge") return DpoType::hinge;
  TORCH_CHECK(name == "ipo", "loss_type must be sigmoid, hinge or ipo, got ", name);
  return DpoType::ipo;
}

struct DpoOptions {
  DpoType type = DpoType::sigmoid;
  double beta = 0.1, label_smoothing = 0.0, margin = 0.0;
};

at::Tensor terms_of(const at::Tensor& difference, const DpoOptions& options) {
  if (options.type == DpoType::ipo) return (difference - 1.0 / (2.0 * options.beta)).square();
  const at::Tensor scaled = difference * options.beta;
  if (options.type == DpoType::hinge) return at::relu(1.0 - scaled);
  const at::Tensor h = scaled - options.margin;
  const at::Tensor kept = at::log_sigmoid(h) * -(1.0 - options.label_smoothing);
  if (options.label_smoothing == 0.0) return kept;
  return kept - at::log_sigmoid(-h) * options.label_smoothing;
}

/// The pairs' share of the step's loss, and their terms. `total_pairs` are those of the whole step.
std::tuple<at::Tensor, at::Tensor> dpo(const at::Tensor& chosen, const at::Tensor& rejected,
                                       const at::Tensor& ref_chosen, const at::Tensor& ref_rejected,
                                       const DpoOptions& options, const ReductionPlan& plan) {
  TORCH_CHECK(chosen.dim() == 1, "chosen_log_prob must be [pairs], got ", chosen.sizes());
  expect_like(chosen, rejected, "rejected_log_prob");
  expect_like(chosen, ref_chosen, "ref_chosen_log_prob");
  expect_like(chosen, ref_rejected, "ref_rejected_log_prob");
  TORCH_CHECK(options.beta > 0.0, "beta must be positive, got ", options.beta);
  TORCH_CHECK(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0,
              "label_smoothing must lie in [0, 1], got ", options.label_smoothing);
  TORCH_CHECK(options.margin >= 0.0, "margin must be at least 0, got ", options.margin);
  const at::ScalarType wide = compute_type(chosen.scalar_type());
  // A reference is a constant, also where it was computed with gradients.
  const at::Tensor reference = ref_chosen.detach().to(wide) - ref_rejected.detach().to(wide);
  const at::Tensor difference = (chosen.to(wide) - rejected.to(wide)) - reference;
  const at::Tensor terms = terms_of(difference, options);
  const at::Tensor valid = at::ones({chosen.size(0), 1}, chosen.options().dtype(at::kBool));
  return {reduce(terms.unsqueeze(1), valid, plan), terms};
}

std::tuple<at::Tensor, at::Tensor> dpo_operator(
    const at::Tensor& chosen, const at::Tensor& rejected, const at::Tensor& ref_chosen,
    const at::Tensor& ref_rejected, std::int64_t total_pairs, c10::string_view reduction,
    c10::string_view loss_type, double beta, double label_smoothing, double margin) {
  TORCH_CHECK(total_pairs > 0 || chosen.numel() == 0, "total_pairs must be positive, got ",
              total_pairs);
  return dpo(chosen, rejected, ref_chosen, ref_rejected,
             {.type = parse_dpo_type(loss_type),
              .beta = beta,
              .label_smoothing = label_smoothing,
              .margin = margin},
             reduction_plan(reduction, {.total_sequences = total_pairs}));
}

StepOutputs dpo_step(const StepInputs& in) {
  auto [loss, per_pair] = dpo(in["chosen_log_prob"], in["rejected_log_prob"],
                              in["ref_chosen_log_prob"], in["ref_rejected_log_prob"],
                              {.type = parse_dpo_type(in.spec().choice("loss_type")),
                               .beta = in.spec().number("beta"),
                               .label_smoothing = in.spec().number("label_smoothing"),
                               .margin = in.spec().number("margin")},
                              in.reduction_plan());
  return {.loss = loss, .values = {{"per_pair", per_pair}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation dpo_implementation() {
  return torch_implementation("dpo", {"impl/torch/dpo.cpp", kLine}, dpo_step,
                              "(c - r) - (ref_c - ref_r) with e sigmoid(h) - (1 - e) sigmoid(-h)");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "dpo(Tensor chosen_log_prob, Tensor rejected_log_prob, Tensor ref_chosen_log_prob, "
      "Tensor ref_rejected_log_prob, *, int total_pairs, str reduction='sequence_mean', "
      "str loss_type='sigmoid', float beta=0.1, float label_smoothing=0.0, float margin=0.0) "
      "-> (Tensor loss, Tensor per_pair)");
  library.impl("dpo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::dpo_operator));
}
