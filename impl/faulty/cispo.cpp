// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/cispo.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class CispoFault {
  none,
  gradient_through_weight,
  bounds_around_one,
  log_prob_detached,
  weight_repaired,
  mask_multiply,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerCispo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerCispo(MicroBatch& batch, CispoFault fault)
      : batch_(batch),
        in_(batch),
        fault_(fault),
        low_(in_.option("weight_low")),
        high_(in_.option("weight_high")),
        limit_(in_.limit("log_ratio_clamp")) {
    if (fault == CispoFault::bounds_around_one) {
      low_ = V(1) - low_;
      high_ = V(1) + high_;
    }
  }

  LossResult run() {
    return run_by_position<Format>(
        batch_,
        {.leaf = "log_prob",
         .multiplies_mask = fault_ == CispoFault::mask_multiply,
         .local_means = fault_ == CispoFault::mean_of_micro_batch_means},
        [this](Variable log_prob, std::int64_t at) { return term_of(log_prob, at); });
  }

 private:
  Variable term_of(Variable log_prob, std::int64_t at) const {
    const auto constant = [&](std::string_view field) {
      return log_prob.tape().constant(in_.field(field, at));
    };
    Variable log_ratio = log_prob - constant("old_log_prob");
    if (limit_) log_ratio = clamp(log_ratio, -*limit_, *limit_);
    Variable weight = clamp(exp(log_ratio), low_, high_);
    if (fault_ == CispoFault::weight_repaired) weight = nan_to_num(weight);
    const bool flows = fault_ == CispoFault::gradient_through_weight;
    const Variable scale = -((flows ? weight : detach(weight)) * constant("advantage"));
    // An impossible token of no weight: its infinite log-prob must not meet the zero.
    const bool silent = scale.value() == V(0) && std::isinf(log_prob.value());
    if (silent && fault_ != CispoFault::mask_multiply) return log_prob.tape().constant(V(0));
    return scale * (fault_ == CispoFault::log_prob_detached ? detach(log_prob) : log_prob);
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  CispoFault fault_;
  V low_, high_;
  std::optional<V> limit_;
};

Implementation implementation(std::string name, CispoFault fault = CispoFault::none,
                              const Trainer& trainer = {}) {
  return eager_implementation({.loss = "cispo", .source = {"impl/faulty/cispo.cpp", 1}},
                              std::move(name), step_of<EagerCispo>(fault), trainer);
}

Implementation faulty(std::string name, CispoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

}  // namespace

std::vector<Implementation> cispo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(faulty("gradient_through_weight", CispoFault::gradient_through_weight,
                       {.twin = "eager",
                        .thread = "https://arxiv.org/abs/2506.13585",
                        .cause = "gradient through what is constant",
                        .trigger = "a weight inside its bounds",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("bounds_around_one", CispoFault::bounds_around_one,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/blob/main/trl/trainer/"
                                  "grpo_config.py",
                        .cause = "option misread",
                        .trigger = "a weight beyond a bound",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("log_prob_detached", CispoFault::log_prob_detached,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/commit/9d7bca91a",
                        .cause = "dead signal",
                        .trigger = "an advantage that is not 0",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("weight_repaired", CispoFault::weight_repaired,
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA-NeMo/RL/blob/main/nemo_rl/algorithms/"
                                  "loss_functions.py",
                        .cause = "laundering",
                        .trigger = "an old log-prob that is NaN at a valid position",
                        .killers = {"no_laundering"}}));
  all.push_back(faulty("mask_multiply", CispoFault::mask_multiply,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6693",
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_of_micro_batch_means", CispoFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  return all;
}

}  // namespace lossgate::impl
