// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/gmpo.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class GmpoFault {
  none,
  product_of_weights,
  clipped_on_both_sides,
  bounds_of_the_weight,
  zero_advantage_multiplied,
  mask_multiply,
  empty_row_counted,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerGmpo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerGmpo(MicroBatch& batch, GmpoFault fault) : batch_(batch), in_(batch), fault_(fault) {
    low_ = in_.option("clip_low"), high_ = in_.option("clip_high");
    if (fault != GmpoFault::bounds_of_the_weight) return;
    low_ = low_ < V(1) ? -std::log1p(-low_) : std::numeric_limits<V>::infinity();
    high_ = std::log1p(high_);
  }

  LossResult run() {
    const Extents extents = batch_.part.batch.at("log_prob").extents;
    std::vector<Variable> leaves, terms, weighted;
    for (std::int64_t s = 0; s < extents[0]; ++s) {
      std::vector<Variable> log_ratios, advantages;
      for (std::int64_t at = s * extents[1]; at < (s + 1) * extents[1]; ++at) {
        leaves.push_back(tape_.variable(in_.field("log_prob", at)));
        const bool valid = batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
        if (!valid && fault_ != GmpoFault::mask_multiply) continue;
        log_ratios.push_back(bounded(leaves.back(), at));
        if (fault_ == GmpoFault::mask_multiply)
          log_ratios.back() = log_ratios.back() * number(valid);
        if (valid) advantages.push_back(number(in_.field("advantage", at)));
      }
      const bool empty = advantages.empty();
      terms.push_back(empty ? number(V(0)) : term_of(log_ratios, advantages));
      weighted.push_back(terms.back() * number(weight()));
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    LossResult result =
        result_by_sequence<Format>(tape_, loss, "per_sequence", terms, {{"log_prob", leaves}});
    result.outputs.back().tensor.extents = extents;
    return result;
  }

 private:
  Variable number(V x) { return tape_.constant(x); }

  /// The factor of each term in the loss.
  V weight() const {
    if (batch_.part.spec.reduction == Reduction::sum) return V(1);
    const std::int64_t count = fault_ == GmpoFault::empty_row_counted ? batch_.totals.rows
                               : fault_ == GmpoFault::mean_of_micro_batch_means
                                   ? batch_.positions.sequences
                                   : batch_.totals.sequences;
    return count > 0 ? V(1) / static_cast<V>(count) : V(0);
  }

  /// A token's log-ratio within the bound that its advantage gives it, as its trainers write it.
  Variable bounded(Variable log_prob, std::int64_t at) {
    const V advantage = in_.field("advantage", at);
    const Variable log_ratio = log_prob - number(in_.field("old_log_prob", at));
    const Variable within = clamp(log_ratio, -low_, high_);
    if (fault_ == GmpoFault::clipped_on_both_sides) return within;
    if (advantage > V(0)) return minimum(log_ratio, within);
    const bool silent = advantage == V(0) && fault_ != GmpoFault::zero_advantage_multiplied;
    return silent ? number(V(0)) : maximum(log_ratio, within);
  }

  Variable term_of(const std::vector<Variable>& log_ratios,
                   const std::vector<Variable>& advantages) {
    const Variable count = number(static_cast<V>(advantages.size()));
    const V advantage = (tape_.sum(advantages) / count).value();
    const Variable sum = fault_ == GmpoFault::product_of_weights ? log_of_product(log_ratios)
                                                                 : tape_.sum(log_ratios);
    const Variable log_weight = sum / count;
    // A zero is selected, whatever it meets; a NaN stays.
    const bool vanished = std::isinf(log_weight.value()) && log_weight.value() < V(0);
    const bool silent = advantage == V(0) && fault_ != GmpoFault::zero_advantage_multiplied;
    const bool undefined = std::isnan(log_weight.value()) || std::isnan(advantage);
    if ((silent || vanished) && !undefined) return number(V(0));
    return exp(log_weight) * number(-advantage);
  }

  /// As the paper writes it, with a root of the product.
  Variable log_of_product(const std::vector<Variable>& log_ratios) {
    Variable product = number(V(1));
    for (const Variable& log_ratio : log_ratios) product = product * exp(log_ratio);
    return log(product);
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  GmpoFault fault_;
  V low_, high_;
  Tape<Format> tape_;
};

Implementation implementation(std::string name, GmpoFault fault = GmpoFault::none,
                              const Trainer& trainer = {}) {
  return eager_implementation({.loss = "gmpo", .source = {"impl/faulty/gmpo.cpp", 1}},
                              std::move(name), step_of<EagerGmpo>(fault), trainer);
}

Implementation faulty(std::string name, GmpoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

constexpr const char* kPaper = "https://arxiv.org/abs/2507.20673";
constexpr const char* kTrl =
    "https://github.com/huggingface/trl/blob/main/trl/experimental/gmpo/gmpo_trainer.py";
constexpr const char* kVerl =
    "https://github.com/verl-project/verl/blob/main/verl/trainer/ppo/core_algos.py";

/// Faults in the weight of a sequence.
void add_weight_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("product_of_weights", GmpoFault::product_of_weights,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "overflow of a square or sum",
                        .trigger = "log-ratios that add up to more than 88.7 (f32)",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("clipped_on_both_sides", GmpoFault::clipped_on_both_sides,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "undeclared bound",
                        .trigger = "a log-ratio beyond the bound that its advantage does not set",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("bounds_of_the_weight", GmpoFault::bounds_of_the_weight,
                       {.twin = "eager",
                        .thread = kTrl,
                        .cause = "option misread",
                        .trigger = "a log-ratio between the bounds of either reading",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("zero_advantage_multiplied", GmpoFault::zero_advantage_multiplied,
                       {.twin = "eager",
                        .thread = kTrl,
                        .cause = "zero times infinity",
                        .trigger = "advantages of 0, and a mean log-ratio above 88.7 (f32)",
                        .killers = {"zero_advantage_zero_gradient"}}));
}

/// Faults in what counts.
void add_count_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("mask_multiply", GmpoFault::mask_multiply,
                       {.twin = "eager",
                        .thread = kVerl,
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("empty_row_counted", GmpoFault::empty_row_counted,
                       {.twin = "eager",
                        .thread = kTrl,
                        .cause = "empty row counted",
                        .trigger = "a sequence without a valid position",
                        .killers = {"empty_is_zero"}}));
  all.push_back(faulty("mean_of_micro_batch_means", GmpoFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = kVerl,
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal sizes",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

}  // namespace

std::vector<Implementation> gmpo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  add_weight_faults(all);
  add_count_faults(all);
  return all;
}

}  // namespace lossgate::impl
