// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/operations.h"
#include "impl/pairwise_sum.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

using Index = std::int64_t;

enum class CorrectionFault {
  none,
  filter_multiplies,  ///< a weight outside its bounds times 0
  overflow_repaired,  ///< an infinite weight becomes 0
  mask_multiplies,    ///< a masked log-ratio times 0
  mean_for_sum,       ///< a sequence's weight is that of its mean log-ratio
  nan_replaced,       ///< by the trainer's own log-prob
};

template <class F>
class Correction {
 public:
  Correction(const MicroBatch& batch, CorrectionFault fault)
      : batch_(batch),
        fault_(fault),
        level_(spec().choice("level")),
        drops_(spec().choice("beyond") == "drop"),
        low_(static_cast<F>(spec().number("weight_low"))),
        high_(static_cast<F>(spec().number("weight_high"))) {
    if (!spec().is_none("log_ratio_clamp")) {
      limit_ = static_cast<F>(spec().number("log_ratio_clamp"));
    }
  }

  LossResult run() {
    const Extents& extents = field("old_log_prob").extents;
    Tensor weights = Tensor::zeros(sizeof(F) == 8 ? Dtype::f64 : Dtype::f32, extents);
    for (Index s = 0; s < extents[0]; ++s) {
      const F shared = level_ == "token" ? F(0) : of_sequence(s, extents[1]);
      for (Index t = 0; t < extents[1]; ++t) {
        const Index at = s * extents[1] + t;
        if (!valid(at)) continue;
        const F weight = level_ == "token" ? importance(ratio(at)) : shared;
        weights.set(at, static_cast<double>(bounded(weight)));
      }
    }
    LossResult result;
    result.outputs.push_back({"weight", std::move(weights)});
    return result;
  }

 private:
  bool is(CorrectionFault fault) const { return fault_ == fault; }
  bool valid(Index at) const { return batch_.positions.valid[static_cast<std::size_t>(at)] != 0; }
  const LossSpec& spec() const { return batch_.part.spec; }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }

  F ratio(Index at) const {
    const F old = static_cast<F>(field("old_log_prob").at(at)),
            sampler = static_cast<F>(field("sampler_log_prob").at(at));
    if (is(CorrectionFault::nan_replaced) && std::isnan(sampler)) return F(0);
    return old - sampler;
  }

  std::vector<F> ratios(Index s, Index tokens) const {
    std::vector<F> all;
    for (Index at = s * tokens; at < (s + 1) * tokens; ++at) {
      if (valid(at)) all.push_back(ratio(at));
      if (!valid(at) && is(CorrectionFault::mask_multiplies)) all.push_back(ratio(at) * F(0));
    }
    return all;
  }

  F importance(F ratio) const {
    return std::exp(limit_ ? std::clamp(ratio, -*limit_, *limit_) : ratio);
  }

  F of_sequence(Index s, Index tokens) const {
    const std::vector<F> all = ratios(s, tokens);
    const F sum = pairwise_sum(all.data(), all.size());
    const bool averages = level_ == "geometric" || is(CorrectionFault::mean_for_sum);
    const auto count = static_cast<F>(batch_.positions.row_tokens[static_cast<std::size_t>(s)]);
    return importance(averages ? sum / count : sum);
  }

  F bounded(F weight) const {
    if (is(CorrectionFault::overflow_repaired) && std::isinf(weight)) weight = F(0);
    if (!drops_) return std::clamp(weight, low_, high_);
    const bool outside = weight < low_ || weight > high_;
    if (is(CorrectionFault::filter_multiplies)) return weight * (outside ? F(0) : F(1));
    return outside ? F(0) : weight;
  }

  const MicroBatch& batch_;
  CorrectionFault fault_;
  std::string level_;
  bool drops_;
  F low_, high_;
  std::optional<F> limit_;
};

Implementation implementation(std::string name, CorrectionFault fault) {
  return eager_implementation(
      {.loss = "rollout_correction", .source = {"impl/faulty/rollout_correction.cpp", 1}},
      std::move(name), step_by_width<Correction>(fault));
}

Implementation faulty(std::string name, CorrectionFault fault, Fault why) {
  return with_fault(implementation(std::move(name), fault), std::move(why));
}

/// Faults of what overflows, and of what is no number.
void add_range_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("filter_multiplies", CorrectionFault::filter_multiplies,
                       {.twin = "eager",
                        .thread = "https://github.com/OpenRLHF/OpenRLHF/pull/1314",
                        .cause = "zero times infinity",
                        .trigger = "a dropped weight that overflows",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("overflow_repaired", CorrectionFault::overflow_repaired,
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA-NeMo/RL/blob/main/nemo_rl/algorithms/"
                                  "loss_functions.py",
                        .cause = "laundering",
                        .trigger = "a truncated weight that overflows",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("nan_replaced", CorrectionFault::nan_replaced,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6297",
                        .cause = "laundering",
                        .trigger = "a sampler's log-prob that is NaN at a valid position",
                        .killers = {"no_laundering"}}));
}

/// Faults of a sequence's weight.
void add_sequence_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("mask_multiplies", CorrectionFault::mask_multiplies,
                       {.twin = "eager",
                        .thread = "https://github.com/verl-project/verl/pull/6361",
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position of a sequence",
                        .killers = {"finite_forward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_for_sum", CorrectionFault::mean_for_sum,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/5815",
                        .cause = "option misread",
                        .trigger = "a sequence of two tokens whose log-ratios add up",
                        .killers = {"reference_agreement"}}));
}

}  // namespace

std::vector<Implementation> rollout_correction_implementations() {
  std::vector<Implementation> all = {implementation("eager", CorrectionFault::none)};
  add_range_faults(all);
  add_sequence_faults(all);
  return all;
}

}  // namespace lossgate::impl
