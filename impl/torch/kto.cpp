// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

struct KtoOptions {
  double beta = 0.1, kl = 0.0, desirable_weight = 1.0, undesirable_weight = 1.0;
};

/// The answers' share of the step's loss, and their terms. `kl` is one number of the whole step.
std::tuple<at::Tensor, at::Tensor> kto(const at::Tensor& log_prob, const at::Tensor& ref_log_prob,
                                       const at::Tensor& desirable, const KtoOptions& options,
                                       const ReductionPlan& plan) {
  TORCH_CHECK(log_prob.dim() == 1, "log_prob must be [sequences], got ", log_prob.sizes());
  expect_like(log_prob, ref_log_prob, "ref_log_prob");
  expect_like(log_prob, desirable, "desirable");
  TORCH_CHECK(desirable.scalar_type() == at::kBool, "desirable must be boolean, got ",
              desirable.scalar_type());
  TORCH_CHECK(options.beta > 0.0, "beta must be positive, got ", options.beta);
  TORCH_CHECK(options.kl >= 0.0, "kl must be at least 0, got ", options.kl);
  TORCH_CHECK(options.desirable_weight >= 0.0, "desirable_weight must be at least 0, got ",
              options.desirable_weight);
  TORCH_CHECK(options.undesirable_weight >= 0.0, "undesirable_weight must be at least 0, got ",
              options.undesirable_weight);
  const at::ScalarType wide = compute_type(log_prob.scalar_type());
  const auto number = [&](double x) { return at::full({}, x, log_prob.options().dtype(wide)); };
  // A reference is a constant, also where it was computed with gradients.
  const at::Tensor log_ratio = log_prob.to(wide) - ref_log_prob.detach().to(wide);
  const at::Tensor gain = (log_ratio - options.kl) * options.beta;
  const at::Tensor weight =
      at::where(desirable, number(options.desirable_weight), number(options.undesirable_weight));
  // 1 - sigmoid(h) would lose every digit of a small term.
  const at::Tensor terms = at::sigmoid(at::where(desirable, -gain, gain)) * weight;
  const at::Tensor valid = at::ones({log_prob.size(0), 1}, desirable.options());
  return {reduce(terms.unsqueeze(1), valid, plan), terms};
}

std::tuple<at::Tensor, at::Tensor> kto_operator(
    const at::Tensor& log_prob, const at::Tensor& ref_log_prob, const at::Tensor& desirable,
    std::int64_t total_sequences, c10::string_view reduction, double beta, double kl,
    double desirable_weight, double undesirable_weight) {
  TORCH_CHECK(total_sequences > 0 || log_prob.numel() == 0,
              "total_sequences must be positive, got ", total_sequences);
  return kto(log_prob, ref_log_prob, desirable,
             {.beta = beta,
              .kl = kl,
              .desirable_weight = desirable_weight,
              .undesirable_weight = undesirable_weight},
             reduction_plan(reduction, {.total_sequences = total_sequences}));
}

StepOutputs kto_step(const StepInputs& in) {
  auto [loss, per_sequence] = kto(in["log_prob"], in["ref_log_prob"], in["desirable"],
                                  {.beta = in.spec().number("beta"),
                                   .kl = in.spec().number("kl"),
                                   .desirable_weight = in.spec().number("desirable_weight"),
                                   .undesirable_weight = in.spec().number("undesirable_weight")},
                                  in.reduction_plan());
  return {.loss = loss, .values = {{"per_sequence", per_sequence}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation kto_implementation() {
  return torch_implementation("kto", {"impl/torch/kto.cpp", kLine}, kto_step, "sigmoid(-h)");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "kto(Tensor log_prob, Tensor ref_log_prob, Tensor desirable, *, int total_sequences, "
      "str reduction='sequence_mean', float beta=0.1, float kl=0.0, float desirable_weight=1.0, "
      "float undesirable_weight=1.0) -> (Tensor loss, Tensor per_sequence)");
  library.impl("kto", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::kto_operator));
}
