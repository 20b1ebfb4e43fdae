// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/dro.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class DroFault {
  none,
  square_then_beta,
  beta_not_halved,
  penalty_rewarded,
  penalty_detached,
  zero_weight_multiplied,
  mask_multiply,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerDro {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerDro(MicroBatch& batch, DroFault fault)
      : batch_(batch),
        in_(batch),
        fault_(fault),
        factor_(in_.option("beta") * (fault == DroFault::beta_not_halved ? V(1) : V(0.5))) {}

  LossResult run() {
    return run_by_position<Format>(
        batch_,
        {.leaf = "log_prob",
         .multiplies_mask = has(DroFault::mask_multiply),
         .local_means = has(DroFault::mean_of_micro_batch_means)},
        [this](Variable log_prob, std::int64_t at) { return term_of(log_prob, at); });
  }

 private:
  bool has(DroFault fault) const { return fault_ == fault; }

  Variable term_of(Variable log_prob, std::int64_t at) const {
    const auto constant = [&](std::string_view field) {
      return log_prob.tape().constant(in_.field(field, at));
    };
    const Variable old = constant("old_log_prob"), advantage = constant("advantage"),
                   weight = constant("importance_weight");
    // A weight of 0 must not meet what overflows; a NaN stays.
    const bool defined = std::ranges::none_of(std::array{log_prob, old, advantage},
                                              [](Variable x) { return std::isnan(x.value()); });
    const bool multiplies = has(DroFault::zero_weight_multiplied) || has(DroFault::mask_multiply);
    if (weight.value() == V(0) && defined && !multiplies) return weight;
    const Variable current = has(DroFault::penalty_detached) ? detach(log_prob) : log_prob;
    const Variable gain = advantage * log_prob, cost = penalty_of(current - old);
    return weight * (has(DroFault::penalty_rewarded) ? -gain - cost : cost - gain);
  }

  Variable penalty_of(Variable log_ratio) const {
    const Variable factor = log_ratio.tape().constant(factor_);
    if (has(DroFault::square_then_beta)) return factor * (log_ratio * log_ratio);
    return (factor * log_ratio) * log_ratio;
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  DroFault fault_;
  V factor_;  ///< of the square
};

Implementation implementation(std::string name, DroFault fault = DroFault::none,
                              const Trainer& trainer = {}) {
  return eager_implementation({.loss = "dro", .source = {"impl/faulty/dro.cpp", 1}},
                              std::move(name), step_of<EagerDro>(fault), trainer);
}

Implementation faulty(std::string name, DroFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// The same where f16 is computed in f16.
Implementation in_f16(Implementation i, DroFault fault) {
  return in_the_fields_format(std::move(i), [fault](MicroBatch& batch) {
    const bool half = float_dtype(batch.signature, batch.part) == Dtype::f16;
    return half ? EagerDro<F16>(batch, fault).run() : step_of<EagerDro>(fault)(batch);
  });
}

constexpr const char* kPaper = "https://arxiv.org/abs/2405.19107";
constexpr const char* kTinker = "https://tinker-docs.thinkingmachines.ai/tinker/losses/dro";
constexpr const char* kVerl =
    "https://github.com/verl-project/verl/blob/main/verl/trainer/ppo/core_algos.py";

/// Faults in the penalty.
void add_penalty_faults(std::vector<Implementation>& all) {
  Implementation square =
      faulty("square_then_beta", DroFault::square_then_beta,
             {.twin = "eager_native",
              .thread = kVerl,
              .cause = "overflow of a square or sum",
              .trigger = "|log-ratio| between 1.84e19 and 1.16e20 (f32), 256 and 1619 (f16), where "
                         "beta is 0.05",
              .killers = {"finite_forward"}});
  all.push_back(in_f16(std::move(square), DroFault::square_then_beta));
  all.push_back(faulty("beta_not_halved", DroFault::beta_not_halved,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "option misread",
                        .trigger = "a log-ratio that is not 0",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("penalty_rewarded", DroFault::penalty_rewarded,
                       {.twin = "eager",
                        .thread = kTinker,
                        .cause = "disagrees with the formula",
                        .trigger = "a log-ratio that is not 0",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("penalty_detached", DroFault::penalty_detached,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/commit/9d7bca91a",
                        .cause = "backward is not the derivative",
                        .trigger = "a log-ratio that is not 0",
                        .killers = {"reference_agreement"}}));
}

/// Faults in what counts.
void add_count_faults(std::vector<Implementation>& all) {
  all.push_back(
      faulty("zero_weight_multiplied", DroFault::zero_weight_multiplied,
             {.twin = "eager",
              .thread = kVerl,
              .cause = "zero times infinity",
              .trigger = "a weight of 0 beside an impossible token, or a square that overflows",
              .killers = {"finite_forward"}}));
  all.push_back(faulty("mask_multiply", DroFault::mask_multiply,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6693",
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_of_micro_batch_means", DroFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

}  // namespace

std::vector<Implementation> dro_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(in_f16(implementation("eager_native"), DroFault::none));
  add_penalty_faults(all);
  add_count_faults(all);
  return all;
}

}  // namespace lossgate::impl
