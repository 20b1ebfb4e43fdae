// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

/// -log sigmoid of the logarithm of the odds of either answer over the other's. No logarithm is
/// taken of what a certain answer leaves, 0, and no gradient goes through what `where` leaves out.
at::Tensor cost_of(const at::Tensor& chosen, const at::Tensor& rejected) {
  const at::Tensor right = chosen >= rejected;
  const at::Tensor likely = at::where(right, chosen, rejected),
                   unlikely = at::where(right, rejected, chosen), gap = unlikely - likely;
  const at::Tensor rest = 0.0 - at::expm1(likely), more = 0.0 - at::expm1(unlikely);
  // Of the odds of the less likely answer over the other's: 1 at most.
  const at::Tensor ratio = at::exp(gap) * (rest / more);
  const at::Tensor log_ratio = gap + (at::log(rest.masked_fill(right, 1.0)) - at::log(more));
  return at::log1p(ratio) - log_ratio.masked_fill(right, 0.0);
}

/// The pairs' share of the step's loss, and their terms. `total_pairs` are those of the whole step.
std::tuple<at::Tensor, at::Tensor> orpo(const at::Tensor& chosen, const at::Tensor& rejected,
                                        double beta, const ReductionPlan& plan) {
  TORCH_CHECK(chosen.dim() == 1, "chosen_log_prob must be [pairs], got ", chosen.sizes());
  expect_like(chosen, rejected, "rejected_log_prob");
  TORCH_CHECK(beta > 0.0, "beta must be positive, got ", beta);
  const at::ScalarType wide = compute_type(chosen.scalar_type());
  const at::Tensor terms = cost_of(chosen.to(wide), rejected.to(wide)) * beta;
  const at::Tensor valid = at::ones({chosen.size(0), 1}, chosen.options().dtype(at::kBool));
  return {reduce(terms.unsqueeze(1), valid, plan), terms};
}

std::tuple<at::Tensor, at::Tensor> orpo_operator(const at::Tensor& chosen,
                                                 const at::Tensor& rejected,
                                                 std::int64_t total_pairs,
                                                 c10::string_view reduction, double beta) {
  TORCH_CHECK(total_pairs > 0 || chosen.numel() == 0, "total_pairs must be positive, got ",
              total_pairs);
  return orpo(chosen, rejected, beta, reduction_plan(reduction, {.total_sequences = total_pairs}));
}

StepOutputs orpo_step(const StepInputs& in) {
  auto [loss, per_pair] = orpo(in["chosen_log_prob"], in["rejected_log_prob"],
                               in.spec().number("beta"), in.reduction_plan());
  return {.loss = loss, .values = {{"per_pair", per_pair}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation orpo_implementation() {
  return torch_implementation("orpo", {"impl/torch/orpo.cpp", kLine}, orpo_step, "log(-expm1(x))");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "orpo(Tensor chosen_log_prob, Tensor rejected_log_prob, *, int total_pairs, "
      "str reduction='sequence_mean', float beta=0.1) -> (Tensor loss, Tensor per_pair)");
  library.impl("orpo", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::orpo_operator));
}
