// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/sapo.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class SapoFault {
  none,
  gate_left_open,
  clamp_forgotten,
  one_tau,
  scale_without_tau,
  advantage_repaired,
  mask_multiply,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerSapo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerSapo(MicroBatch& batch, SapoFault fault) : batch_(batch), in_(batch), fault_(fault) {
    if (fault != SapoFault::clamp_forgotten) limit_ = in_.limit("log_ratio_clamp");
  }

  LossResult run() {
    return run_by_position<Format>(
        batch_,
        {.leaf = "log_prob",
         .multiplies_mask = fault_ == SapoFault::mask_multiply,
         .local_means = fault_ == SapoFault::mean_of_micro_batch_means},
        [this](Variable log_prob, std::int64_t at) { return term_of(log_prob, at); });
  }

 private:
  Variable term_of(Variable log_prob, std::int64_t at) const {
    const auto constant = [&](V x) { return log_prob.tape().constant(x); };
    V advantage = in_.field("advantage", at);
    if (fault_ == SapoFault::advantage_repaired && std::isnan(advantage)) advantage = V(0);
    const bool rewarded = advantage > V(0) || fault_ == SapoFault::one_tau;
    const V tau = in_.option(rewarded ? "tau_positive" : "tau_negative");
    const V scale = fault_ == SapoFault::scale_without_tau ? V(4) : V(4) / tau;
    Variable log_ratio = log_prob - constant(in_.field("old_log_prob", at));
    if (limit_) log_ratio = clamp(log_ratio, -*limit_, *limit_);
    Variable gate = sigmoid((exp(log_ratio) - constant(V(1))) * constant(tau));
    // A closed gate hands nothing on to a weight that may be infinite.
    const bool closed = gate.value() * (V(1) - gate.value()) == V(0);
    const bool left_open =
        fault_ == SapoFault::gate_left_open || fault_ == SapoFault::mask_multiply;
    if (closed && !left_open) gate = detach(gate);
    return (gate * constant(scale)) * constant(-advantage);
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  SapoFault fault_;
  std::optional<V> limit_;
};

Implementation implementation(std::string name, SapoFault fault = SapoFault::none,
                              const Trainer& trainer = {}) {
  return eager_implementation({.loss = "sapo", .source = {"impl/faulty/sapo.cpp", 1}},
                              std::move(name), step_of<EagerSapo>(fault), trainer);
}

Implementation faulty(std::string name, SapoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// Faults in the gate and in what goes into it.
void add_gate_faults(std::vector<Implementation>& all) {
  constexpr const char* kPaper = "https://arxiv.org/abs/2511.20347";
  all.push_back(faulty("gate_left_open", SapoFault::gate_left_open,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/blob/main/trl/trainer/"
                                  "grpo_trainer.py",
                        .cause = "clamp after exp",
                        .trigger = "no clamp, and a log-ratio above 88.7 (f32)",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("clamp_forgotten", SapoFault::clamp_forgotten,
                       {.twin = "eager",
                        .thread = "https://github.com/verl-project/verl/blob/main/verl/trainer/ppo/"
                                  "core_algos.py",
                        .cause = "dead clamp",
                        .trigger = "a log-ratio below minus the clamp",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("one_tau", SapoFault::one_tau,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "option misread",
                        .trigger = "a negative advantage",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("scale_without_tau", SapoFault::scale_without_tau,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "option misread",
                        .trigger = "a tau that is not 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("advantage_repaired", SapoFault::advantage_repaired,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/blob/main/trl/trainer/"
                                  "grpo_trainer.py",
                        .cause = "laundering",
                        .trigger = "an advantage that is NaN at a valid position",
                        .killers = {"no_laundering"}}));
}

}  // namespace

std::vector<Implementation> sapo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  add_gate_faults(all);
  all.push_back(
      faulty("mask_multiply", SapoFault::mask_multiply,
             {.twin = "eager",
              .thread = "https://github.com/huggingface/trl/pull/6693",
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a masked position",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_of_micro_batch_means", SapoFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  return all;
}

}  // namespace lossgate::impl
