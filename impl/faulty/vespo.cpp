// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/vespo.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class VespoFault {
  none,
  product,  ///< none: the other form
  gradient_through_weight,
  mean_for_sum,
  one_pair,
  clamp_forgotten,
  power_by_itself,
  weight_repaired,
  mask_multiply,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerVespo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerVespo(MicroBatch& batch, VespoFault fault) : batch_(batch), in_(batch), fault_(fault) {
    if (!is(VespoFault::clamp_forgotten)) limit_ = in_.limit("log_ratio_clamp");
  }

  LossResult run() {
    const Extents& extents = batch_.part.batch.at("log_prob").extents;
    const PositionRules rules{.leaf = "log_prob",
                              .local_means = is(VespoFault::mean_of_micro_batch_means)};
    std::vector<Variable> terms, weighted;
    for (std::int64_t s = 0; s < extents[0]; ++s) {
      const std::int64_t begin = s * extents[1], end = begin + extents[1];
      for (std::int64_t at = begin; at < end; ++at) {
        leaves_.push_back(tape_.variable(in_.field("log_prob", at)));
      }
      const Variable log_weight = log_weight_of(begin, end);
      for (std::int64_t at = begin; at < end; ++at) {
        terms.push_back(term_of(log_weight, at));
        weighted.push_back(terms.back() * number(weight_of_row<V>(batch_, rules, s)));
      }
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return result_by_position(tape_, loss, terms, leaves_, extents, "gradient.log_prob");
  }

 private:
  bool is(VespoFault fault) const { return fault_ == fault; }
  bool valid(std::int64_t at) const {
    return batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
  }
  Variable number(V x) { return tape_.constant(x); }
  Variable leaf(std::int64_t at) const { return leaves_[static_cast<std::size_t>(at)]; }

  Variable log_weight_of(std::int64_t begin, std::int64_t end) {
    const V least = std::log(V(1e-8));
    std::vector<Variable> ratios;
    std::int64_t count = 0;
    for (std::int64_t at = begin; at < end; ++at) {
      count += valid(at);
      if (!valid(at) && !is(VespoFault::mask_multiply)) continue;
      Variable ratio = leaf(at) - number(in_.field("old_log_prob", at));
      if (limit_) ratio = clamp(ratio, -*limit_, *limit_);
      ratios.push_back(is(VespoFault::mask_multiply) ? ratio * number(V(valid(at))) : ratio);
    }
    Variable sum = tape_.sum(ratios);
    if (is(VespoFault::mean_for_sum) && count > 0) sum = sum / number(static_cast<V>(count));
    return clamp(sum, least, V(20));
  }

  Variable weight_of(Variable log_weight, V advantage) {
    const bool positive = advantage >= V(0) || is(VespoFault::one_pair);
    const Variable k = number(in_.option(positive ? "k_positive" : "k_negative"));
    const Variable lambda = number(in_.option(positive ? "lambda_positive" : "lambda_negative"));
    const Variable decay = lambda * exp(log_weight);
    const bool apart = is(VespoFault::power_by_itself) || is(VespoFault::product);
    Variable weight =
        apart ? exp(k * log_weight) * exp(lambda - decay) : exp(lambda + k * log_weight - decay);
    if (is(VespoFault::weight_repaired)) weight = nan_to_num(weight);
    return is(VespoFault::gradient_through_weight) ? weight : detach(weight);
  }

  Variable term_of(Variable log_weight, std::int64_t at) {
    if (!valid(at) && !is(VespoFault::mask_multiply)) return number(V(0));
    const V advantage = in_.field("advantage", at);
    const Variable scale = -(weight_of(log_weight, advantage) * number(advantage));
    if (is(VespoFault::mask_multiply)) return scale * leaf(at) * number(V(valid(at)));
    // An impossible token of no weight: its infinite log-prob must not meet the zero.
    const bool silent = scale.value() == V(0) && std::isinf(leaf(at).value());
    return silent ? number(V(0)) : scale * leaf(at);
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  VespoFault fault_;
  std::optional<V> limit_;
  Tape<Format> tape_;
  std::vector<Variable> leaves_;
};

Implementation implementation(std::string name, VespoFault fault = VespoFault::none,
                              const Trainer& trainer = {}) {
  const bool product = fault == VespoFault::product;
  return eager_implementation(
      {.loss = "vespo",
       .source = {"impl/faulty/vespo.cpp", 1},
       .form = product ? "w^k exp(lambda - lambda w)" : "exp(lambda + k log w - lambda w)"},
      std::move(name), step_of<EagerVespo>(fault), trainer);
}

Implementation faulty(std::string name, VespoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

constexpr const char* kPaper = "https://arxiv.org/abs/2602.10693";
constexpr const char* kTrl = "https://github.com/huggingface/trl/pull/5199";

/// Faults of the weight.
void add_weight_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("gradient_through_weight", VespoFault::gradient_through_weight,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "gradient through what is constant",
                        .trigger = "a weight that moves with its log-ratios",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mean_for_sum", VespoFault::mean_for_sum,
                       {.twin = "eager",
                        .thread = "https://arxiv.org/abs/2507.18071",
                        .cause = "disagrees with the formula",
                        .trigger = "a sequence of two tokens whose log-ratios add up",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("one_pair", VespoFault::one_pair,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "option misread",
                        .trigger = "a negative advantage",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("clamp_forgotten", VespoFault::clamp_forgotten,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "dead clamp",
                        .trigger = "a log-ratio beyond the clamp, and others that make up for it",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("power_by_itself", VespoFault::power_by_itself,
                       {.twin = "eager",
                        .thread = kTrl,
                        .cause = "zero times infinity",
                        .trigger = "k log w above 88.7 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("weight_repaired", VespoFault::weight_repaired,
                       {.twin = "eager",
                        .thread = kTrl,
                        .cause = "laundering",
                        .trigger = "an old log-prob that is NaN at a valid position",
                        .killers = {"no_laundering"}}));
}

}  // namespace

std::vector<Implementation> vespo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(implementation("eager_by_product", VespoFault::product));
  add_weight_faults(all);
  all.push_back(faulty("mask_multiply", VespoFault::mask_multiply,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6693",
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_of_micro_batch_means", VespoFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  return all;
}

}  // namespace lossgate::impl
