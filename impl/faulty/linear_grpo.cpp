// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/linear_grpo.h"

#include <cmath>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/grad_mode.h"
#include "impl/faulty/linear_grpo_eager.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

constexpr const char* kLiger =
    "https://github.com/linkedin/Liger-Kernel/blob/main/src/liger_kernel/chunked_loss/"
    "grpo_loss.py";

/// Automatic differentiation multiplies an advantage by the upstream gradient before it meets the
/// importance weight; far below the normal range that product is lost.
std::optional<std::string> underflows(const Case& c) {
  const Tensor& advantage = c.batch.at("advantage");
  const Dtype compute = advantage.dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const double least = std::ldexp(min_normal(compute), 40);
  for (std::int64_t i = 0; i < advantage.size(); ++i) {
    const double size = std::fabs(advantage.at(i));
    if (size > 0.0 && size < least) return "advantages near the smallest number";
  }
  return std::nullopt;
}

Step eager(const EagerLinearGrpoOptions& options = {}) {
  return [options](MicroBatch& batch) { return eager_linear_grpo(batch, options); };
}

Implementation implementation(std::string name, Step step, const Trainer& trainer = {}) {
  Implementation i = eager_implementation({.loss = "linear_grpo",
                                           .source = {"impl/faulty/linear_grpo_eager.cpp", 1},
                                           .form = kLinearGrpoForm},
                                          std::move(name), std::move(step), trainer);
  i.unsupported = underflows;
  return i;
}

Implementation faulty(std::string name, const EagerLinearGrpoOptions& options, Fault fault,
                      const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), eager(options), trainer), std::move(fault));
}

/// Faults of the objective.
void add_objective_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("no_clamp_mask_multiply",
                       {.objective = {.fault = GrpoFault::unclamped_exp_mask_multiply}},
                       {.twin = "eager",
                        .thread = kLiger,
                        .cause = "non-finite value behind a mask",
                        .trigger = "a masked position with an infinity, a NaN, or a log-ratio "
                                   "above 88.7 (f32)",
                        .killers = {"finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("clamp_after_exp",
                       {.objective = {.fault = GrpoFault::clamp_ratio_after_exp}},
                       {.twin = "eager",
                        .thread = "https://github.com/google/tunix/pull/1560",
                        .cause = "clamp after exp",
                        .trigger = "a valid log-ratio above 88.7 (f32)",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("clamp_in_caller_only",
                       {.objective = {.fault = GrpoFault::clamp_in_caller_only}},
                       {.twin = "eager",
                        .thread = kLiger,
                        .cause = "dead clamp",
                        .trigger = "a valid log-ratio above the clamp",
                        .killers = {"reference_agreement"}}));
  Implementation f16 = faulty("f16_exp_under_clamp_20", {.objective_in_f16 = true},
                              {.twin = "eager",
                               .thread = "https://github.com/OpenRLHF/OpenRLHF/pull/1335",
                               .cause = "narrow arithmetic",
                               .trigger = "f16 with a log-ratio above 11.09",
                               .killers = {"finite_backward"}});
  f16.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.batch.at("hidden").dtype != Dtype::f16) return "the fault is in f16 alone";
    return underflows(c);
  };
  all.push_back(std::move(f16));
  all.push_back(faulty("local_count_as_global",
                       {.objective = {.fault = GrpoFault::local_count_as_global}},
                       {.twin = "eager",
                        .thread = "https://github.com/PrimeIntellect-ai/prime-rl/pull/2562",
                        .cause = "mean of means",
                        .trigger = "ranks of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean}));
}

/// Faults of the output layer.
void add_layer_faults(std::vector<Implementation>& all) {
  Implementation narrow =
      faulty("weight_gradient_in_bf16", {.fault = LinearGrpoFault::weight_gradient_in_16_bits},
             {.twin = "eager",
              .thread = "https://github.com/linkedin/Liger-Kernel/pull/1391",
              .cause = "narrow arithmetic",
              .trigger = "16-bit fields and sequences whose gradients differ",
              .killers = {"reference_agreement"}});
  narrow.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (size_of(c.batch.at("weight").dtype) != 2) return "the fault is in 16 bits alone";
    return underflows(c);
  };
  all.push_back(std::move(narrow));
  all.push_back(faulty("scores_masked_positions",
                       {.fault = LinearGrpoFault::scores_masked_positions},
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/5407",
                        .cause = "value repaired, gradient not",
                        .trigger = "an infinity or NaN in the hidden states of a masked position",
                        .killers = {"masked_positions_inert"}}));
  all.push_back(faulty("temperature_ignored", {.fault = LinearGrpoFault::temperature_ignored},
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/3029",
                        .cause = "option misread",
                        .trigger = "a temperature other than 1",
                        .killers = {"reference_agreement"}}));
}

/// Faults of a kernel that makes gradients in its forward, for those who want them all.
void add_grad_mode_faults(std::vector<Implementation>& all) {
  all.push_back(with_fault(implementation("unbound_in_evaluation", unbound_in_evaluation(eager())),
                           {.twin = "eager",
                            .thread = "https://github.com/linkedin/Liger-Kernel/issues/930",
                            .cause = "depends on requires_grad",
                            .trigger = "inputs that need no gradient",
                            .killers = {"grad_mode_invariance"}}));
  all.push_back(with_fault(implementation("hidden_gradient_with_weight_only",
                                          without_gradient(eager(), "hidden", GradMode::first)),
                           {.twin = "eager",
                            .thread = "https://github.com/fla-org/flash-linear-attention/pull/1248",
                            .cause = "depends on requires_grad",
                            .trigger = "a frozen output layer",
                            .killers = {"grad_mode_invariance"}}));
}

/// Faults of a kernel that keeps what it made for the next call, or makes it once for two.
void add_state_faults(std::vector<Implementation>& all) {
  const auto add = [&](std::string name, Step step, std::string thread, std::string trigger) {
    all.push_back(with_fault(implementation(std::move(name), std::move(step)),
                             {.twin = "eager",
                              .thread = std::move(thread),
                              .cause = "state between calls",
                              .trigger = std::move(trigger),
                              .killers = {"grad_mode_invariance"}}));
  };
  add("evaluated_where_it_is_kept",
      with_one_place_for_all(eager(), "hidden", {History::evaluation}),
      "https://github.com/unslothai/unsloth-zoo/pull/805",
      "an evaluation between a forward and its backward");
  add("one_gradient_buffer", with_one_place_for_all(eager(), "weight", {History::summed_losses}),
      "https://github.com/pytorch/pytorch/issues/181723", "one backward through two calls");
  add("scaled_at_each_backward", scaled_at_each_backward(eager(), "hidden"),
      "https://github.com/k2-fsa/k2/pull/1106",
      "two backwards of one graph, and an upstream gradient other than 1");
}

}  // namespace

std::vector<Implementation> linear_grpo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", eager()));
  add_objective_faults(all);
  add_layer_faults(all);
  add_grad_mode_faults(all);
  add_state_faults(all);
  return all;
}

}  // namespace lossgate::impl
