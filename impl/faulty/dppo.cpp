// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/dppo.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class DppoFault {
  none,
  gradient_through_weight,
  ratio_for_probability,
  either_direction,
  epsilon_forgotten,
  dropped_by_product,
  nan_dropped,
  mask_multiply,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerDppo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerDppo(MicroBatch& batch, DppoFault fault)
      : batch_(batch),
        in_(batch),
        fault_(fault),
        kl_(batch.part.spec.choice("divergence") == "kl"),
        through_weight_(batch.part.spec.choice("surrogate") == "weight"),
        low_(in_.option("divergence_low")),
        high_(in_.option("divergence_high")),
        epsilon_(is(DppoFault::epsilon_forgotten) ? V(0) : in_.option("epsilon")),
        ceiling_(in_.limit("weight_high")),
        limit_(in_.limit("log_ratio_clamp")) {}

  LossResult run() {
    return run_by_position<Format>(
        batch_,
        {.leaf = "log_prob",
         .multiplies_mask = is(DppoFault::mask_multiply),
         .local_means = is(DppoFault::mean_of_micro_batch_means)},
        [this](Variable log_prob, std::int64_t at) { return term_of(log_prob, at); });
  }

 private:
  bool is(DppoFault fault) const { return fault_ == fault; }

  /// D, of the policy before and of the one now.
  V divergence(V now, V old) const {
    const V p = std::exp(now), q = std::exp(old);
    if (is(DppoFault::ratio_for_probability)) return std::abs(p / q - V(1));
    if (!kl_) return std::abs(p - q);
    const V rest = V(1) - p, old_rest = V(1) - q;
    const V others = std::log((old_rest + epsilon_) / (rest + epsilon_));
    return (q == V(0) ? V(0) : q * (old - now)) + (old_rest == V(0) ? V(0) : old_rest * others);
  }

  /// Whether the token moves beyond its bound. Nothing is beyond NaN.
  bool beyond(V now, V old, V advantage) const {
    const V distance = divergence(now, old), moved = std::exp(now) - std::exp(old);
    if (is(DppoFault::either_direction)) return distance > (moved > V(0) ? high_ : low_);
    if (is(DppoFault::nan_dropped) && std::isnan(distance)) return true;
    return (advantage > V(0) && moved > V(0) && distance > high_) ||
           (advantage < V(0) && moved < V(0) && distance > low_);
  }

  Variable term_of(Variable log_prob, std::int64_t at) const {
    Tape<Format>& tape = log_prob.tape();
    const V old = in_.field("old_log_prob", at), advantage = in_.field("advantage", at);
    const bool drops = beyond(log_prob.value(), old, advantage);
    const bool by_product = is(DppoFault::dropped_by_product);
    if (drops && !by_product) return tape.constant(V(0));
    Variable log_ratio = log_prob - tape.constant(old);
    if (limit_) log_ratio = clamp(log_ratio, -*limit_, *limit_);
    Variable weight = exp(log_ratio);
    // A constant: the slope of a clamp, 0, would meet a weight that is infinite.
    if (ceiling_ && weight.value() > *ceiling_) weight = tape.constant(*ceiling_);
    // Zeros decide: no advantage before an infinite weight, no coefficient before such a log-prob.
    if (advantage == V(0) && std::isinf(weight.value())) return tape.constant(V(0));
    const Variable gain = tape.constant(advantage), counts = tape.constant(V(drops ? 0 : 1));
    if (through_weight_) return -(weight * gain * counts);
    const bool flows = is(DppoFault::gradient_through_weight);
    const Variable scale = -((flows ? weight : detach(weight)) * gain);
    const bool silent = scale.value() == V(0) && std::isinf(log_prob.value());
    if (silent && !is(DppoFault::mask_multiply)) return tape.constant(V(0));
    return scale * log_prob * counts;
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  DppoFault fault_;
  bool kl_, through_weight_;
  V low_, high_, epsilon_;
  std::optional<V> ceiling_, limit_;
};

Implementation implementation(std::string name, DppoFault fault = DppoFault::none,
                              const Trainer& trainer = {}) {
  return eager_implementation({.loss = "dppo", .source = {"impl/faulty/dppo.cpp", 1}},
                              std::move(name), step_of<EagerDppo>(fault), trainer);
}

Implementation faulty(std::string name, DppoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

constexpr const char* kPaper = "https://arxiv.org/abs/2602.04879";

/// Faults of what counts.
void add_mask_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("ratio_for_probability", DppoFault::ratio_for_probability,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "disagrees with the formula",
                        .trigger = "an unlikely token whose probability has doubled",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("either_direction", DppoFault::either_direction,
                       {.twin = "eager",
                        .thread = "https://github.com/PrimeIntellect-ai/prime-rl/pull/2434",
                        .cause = "disagrees with the formula",
                        .trigger = "a token beyond a bound whose advantage brings it back",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("epsilon_forgotten", DppoFault::epsilon_forgotten,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "option misread",
                        .trigger = "a token that has become certain, by KL",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("dropped_by_product", DppoFault::dropped_by_product,
                       {.twin = "eager",
                        .thread = "https://github.com/verl-project/verl/pull/5397",
                        .cause = "zero times infinity",
                        .trigger = "a dropped token that is impossible, or whose weight overflows",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("nan_dropped", DppoFault::nan_dropped,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6297",
                        .cause = "laundering",
                        .trigger = "an old log-prob that is NaN at a valid position",
                        .killers = {"no_laundering"}}));
}

}  // namespace

std::vector<Implementation> dppo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(faulty("gradient_through_weight", DppoFault::gradient_through_weight,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "gradient through what is constant",
                        .trigger = "a weight below its bound, beside log_prob",
                        .killers = {"reference_agreement"}}));
  add_mask_faults(all);
  all.push_back(faulty("mask_multiply", DppoFault::mask_multiply,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6693",
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_of_micro_batch_means", DppoFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  return all;
}

}  // namespace lossgate::impl
