// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/reinforce.h"

#include <cmath>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class ReinforceFault {
  none,
  zero_multiplied,
  gradient_through_weight,
  weight_applied_twice,
  weight_repaired,
  ascends,
  mask_multiply,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerReinforce {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerReinforce(MicroBatch& batch, ReinforceFault fault)
      : batch_(batch), in_(batch), fault_(fault) {}

  LossResult run() {
    return run_by_position<Format>(
        batch_,
        {.leaf = "log_prob",
         .multiplies_mask = has(ReinforceFault::mask_multiply),
         .local_means = has(ReinforceFault::mean_of_micro_batch_means)},
        [this](Variable log_prob, std::int64_t at) { return term_of(log_prob, at); });
  }

 private:
  bool has(ReinforceFault fault) const { return fault_ == fault; }

  Variable term_of(Variable log_prob, std::int64_t at) const {
    const auto constant = [&](std::string_view field) {
      return log_prob.tape().constant(in_.field(field, at));
    };
    const Variable coefficient =
        -(constant("advantage") * weight_of(log_prob, constant("importance_weight")));
    // An impossible token without an advantage: its infinite log-prob must not meet the zero.
    const bool silent = coefficient.value() == V(0) && std::isinf(log_prob.value());
    const bool multiplies =
        has(ReinforceFault::zero_multiplied) || has(ReinforceFault::mask_multiply);
    if (silent && !multiplies) return log_prob.tape().constant(V(0));
    const Variable term = coefficient * log_prob;
    return has(ReinforceFault::ascends) ? -term : term;
  }

  Variable weight_of(Variable log_prob, Variable weight) const {
    switch (fault_) {
      case ReinforceFault::gradient_through_weight:  // made of the log-prob, and not detached
        return weight * exp(log_prob - detach(log_prob));
      case ReinforceFault::weight_applied_twice:
        return weight * weight;
      case ReinforceFault::weight_repaired:
        return nan_to_num(weight);
      default:
        return weight;
    }
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  ReinforceFault fault_;
};

Implementation implementation(std::string name, ReinforceFault fault = ReinforceFault::none,
                              const Trainer& trainer = {}) {
  return eager_implementation({.loss = "reinforce", .source = {"impl/faulty/reinforce.cpp", 1}},
                              std::move(name), step_of<EagerReinforce>(fault), trainer);
}

Implementation faulty(std::string name, ReinforceFault fault, Fault why,
                      const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// Faults in the weight that a token is given.
void add_weight_faults(std::vector<Implementation>& all) {
  constexpr const char* kVerl =
      "https://github.com/verl-project/verl/blob/main/verl/trainer/ppo/core_algos.py";
  all.push_back(faulty("gradient_through_weight", ReinforceFault::gradient_through_weight,
                       {.twin = "eager",
                        .thread = kVerl,
                        .cause = "backward is not the derivative",
                        .trigger = "any weight but 0",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("weight_applied_twice", ReinforceFault::weight_applied_twice,
                       {.twin = "eager",
                        .thread = kVerl,
                        .cause = "disagrees with the formula",
                        .trigger = "a weight that is neither 0 nor 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("weight_repaired", ReinforceFault::weight_repaired,
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA-NeMo/RL/blob/main/nemo_rl/algorithms/"
                                  "loss_functions.py",
                        .cause = "laundering",
                        .trigger = "a weight that is NaN at a valid position",
                        .killers = {"no_laundering"}}));
}

/// Faults in the term, and in how terms are put together.
void add_term_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("zero_multiplied", ReinforceFault::zero_multiplied,
                       {.twin = "eager",
                        .thread = "https://github.com/verl-project/verl/blob/main/verl/trainer/ppo/"
                                  "core_algos.py",
                        .cause = "zero times infinity",
                        .trigger = "an impossible token behind an advantage of 0",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("ascends", ReinforceFault::ascends,
                       {.twin = "eager",
                        .thread = "https://doi.org/10.1007/BF00992696",
                        .cause = "wrong sign",
                        .trigger = "an advantage that is not 0",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mask_multiply", ReinforceFault::mask_multiply,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6693",
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_of_micro_batch_means", ReinforceFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

}  // namespace

std::vector<Implementation> reinforce_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  add_weight_faults(all);
  add_term_faults(all);
  return all;
}

}  // namespace lossgate::impl
