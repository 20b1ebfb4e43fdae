// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/operations.h"
#include "impl/faulty/standardise.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

using Index = std::int64_t;

enum class GaeFault {
  none,
  value_of_masked,       ///< what comes next is the next column's value
  reward_of_masked,      ///< a masked reward is added to what comes next
  masked_as_transition,  ///< a masked token is one as any other
};

template <class F>
class Estimator {
 public:
  Estimator(const MicroBatch& batch, GaeFault fault)
      : batch_(batch),
        fault_(fault),
        gamma_(static_cast<F>(batch.part.spec.number("gamma"))),
        lambda_(static_cast<F>(batch.part.spec.number("lambda"))) {}

  LossResult run() {
    const Extents& extents = field("value").extents;
    advantage_ = returns_ = Tensor::zeros(sizeof(F) == 8 ? Dtype::f64 : Dtype::f32, extents);
    for (Index s = 0; s < extents[0]; ++s) estimate(s, extents[1]);
    if (batch_.part.spec.number("whiten") != 0.0) whiten();
    LossResult result;
    result.outputs.push_back({"advantage", std::move(advantage_)});
    result.outputs.push_back({"return", std::move(returns_)});
    return result;
  }

 private:
  bool is(GaeFault fault) const { return fault_ == fault; }
  bool valid(Index at) const { return batch_.positions.valid[static_cast<std::size_t>(at)] != 0; }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }
  F entry(std::string_view name, Index at) const { return static_cast<F>(field(name).at(at)); }

  void estimate(Index s, Index tokens) {
    F next_value = 0, next_advantage = 0;
    for (Index t = tokens - 1; t >= 0; --t) {
      const Index at = s * tokens + t;
      if (!valid(at) && is(GaeFault::reward_of_masked)) next_advantage += entry("reward", at);
      if (!valid(at) && !is(GaeFault::masked_as_transition)) continue;
      const bool neighbour = is(GaeFault::value_of_masked) && t + 1 < tokens;
      const F ahead = neighbour ? entry("value", at + 1) : next_value;
      const F own = entry("value", at);
      next_advantage =
          entry("reward", at) + gamma_ * ahead - own + gamma_ * lambda_ * next_advantage;
      next_value = own;
      if (!valid(at)) continue;
      advantage_.set(at, static_cast<double>(next_advantage));
      returns_.set(at, static_cast<double>(next_advantage + own));
    }
  }

  void whiten() {
    std::vector<F> numbers;
    for (Index at = 0; at < advantage_.size(); ++at) {
      if (valid(at)) numbers.push_back(static_cast<F>(advantage_.at(at)));
    }
    const EagerWhitener<F> whitened(numbers, batch_.part.spec.number("epsilon"));
    for (Index at = 0; at < advantage_.size(); ++at) {
      if (!valid(at)) continue;
      advantage_.set(at, static_cast<double>(whitened(static_cast<F>(advantage_.at(at)))));
    }
  }

  const MicroBatch& batch_;
  GaeFault fault_;
  F gamma_, lambda_;
  Tensor advantage_, returns_;
};

Implementation implementation(std::string name, GaeFault fault) {
  return eager_implementation({.loss = "gae", .source = {"impl/faulty/gae.cpp", 1}},
                              std::move(name), step_by_width<Estimator>(fault));
}

Implementation faulty(std::string name, GaeFault fault, Fault why) {
  return with_fault(implementation(std::move(name), fault), std::move(why));
}

/// Faults of the recursion.
void add_recursion_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("value_of_masked", GaeFault::value_of_masked,
                       {.twin = "eager",
                        .thread = "https://github.com/alibaba/ROLL/pull/447",
                        .cause = "masked data leaks",
                        .trigger = "a masked position behind a valid one, with a value",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
  all.push_back(faulty("reward_of_masked", GaeFault::reward_of_masked,
                       {.twin = "eager",
                        .thread = "https://github.com/natolambert/rlhf-book/pull/216",
                        .cause = "masked data leaks",
                        .trigger = "a masked position behind a valid one, with a reward",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
  all.push_back(faulty("masked_as_transition", GaeFault::masked_as_transition,
                       {.twin = "eager",
                        .thread = "https://github.com/radixark/miles/pull/1827",
                        .cause = "masked data leaks",
                        .trigger = "a masked position behind a valid one",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
}

}  // namespace

std::vector<Implementation> gae_implementations() {
  std::vector<Implementation> all = {implementation("eager", GaeFault::none)};
  add_recursion_faults(all);
  return all;
}

}  // namespace lossgate::impl
