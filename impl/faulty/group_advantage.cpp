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

enum class GroupFault {
  none,
  by_stride,  ///< groups are so many sequences side by side as the first one has
  others_deviation,
  batch_deviation,
};

struct GroupOptions {
  GroupFault fault = GroupFault::none;
  VarianceFault variance = VarianceFault::none;
};

template <class F>
class Groups {
 public:
  Groups(const MicroBatch& batch, const GroupOptions& options)
      : options_(options),
        spec_(batch.part.spec),
        reward_(batch.part.batch.at("reward")),
        group_(batch.part.batch.at("group")) {}

  LossResult run() const {
    Tensor advantage = Tensor::zeros(sizeof(F) == 8 ? Dtype::f64 : Dtype::f32, reward_.extents);
    for (Index s = 0; s < reward_.size(); ++s) {
      advantage.set(s, static_cast<double>(advantage_of(s)));
    }
    LossResult result;
    result.outputs.push_back({"advantage", std::move(advantage)});
    return result;
  }

 private:
  F reward(Index s) const { return static_cast<F>(reward_.at(s)); }
  bool is(GroupFault fault) const { return options_.fault == fault; }

  bool alike(Index a, Index b) const {
    if (!is(GroupFault::by_stride)) return group_.integer_at(a) == group_.integer_at(b);
    Index members = 0;
    for (Index s = 0; s < group_.size(); ++s) {
      members += group_.integer_at(s) == group_.integer_at(0);
    }
    return a / members == b / members;
  }

  std::vector<F> members(Index s, bool with_itself) const {
    std::vector<F> rewards;
    for (Index other = 0; other < reward_.size(); ++other) {
      if (alike(other, s) && (with_itself || other != s)) rewards.push_back(reward(other));
    }
    return rewards;
  }

  F deviation(Index s) const {
    std::vector<F> numbers = members(s, !is(GroupFault::others_deviation));
    if (is(GroupFault::batch_deviation)) {
      numbers.clear();
      for (Index other = 0; other < reward_.size(); ++other) numbers.push_back(reward(other));
    }
    const bool unbiased = spec_.choice("scale") == "std";
    return std::sqrt(mean_and_variance(numbers, unbiased, options_.variance).variance);
  }

  F advantage_of(Index s) const {
    const std::vector<F> all = members(s, true), others = members(s, false);
    const bool scales = spec_.choice("scale") != "unscaled";
    const F epsilon = static_cast<F>(spec_.number("epsilon"));
    const bool divides_by_zero =
        options_.variance == VarianceFault::of_one && spec_.choice("scale") == "std";
    if (others.empty() && !divides_by_zero) {
      if (spec_.choice("singleton") == "zero") return F(0);
      return scales ? reward(s) / (F(1) + epsilon) : reward(s);
    }
    const bool own = spec_.choice("baseline") == "mean" || others.empty();
    const F distance =
        reward(s) - mean_and_variance(own ? all : others, false, VarianceFault::none).mean;
    return scales ? distance / (deviation(s) + epsilon) : distance;
  }

  GroupOptions options_;
  const LossSpec& spec_;
  const Tensor &reward_, &group_;
};

Implementation implementation(std::string name, const GroupOptions& options) {
  return eager_implementation(
      {.loss = "group_advantage", .source = {"impl/faulty/group_advantage.cpp", 1}},
      std::move(name), step_by_width<Groups>(options));
}

Implementation faulty(std::string name, const GroupOptions& options, Fault why) {
  return with_fault(implementation(std::move(name), options), std::move(why));
}

}  // namespace

std::vector<Implementation> group_advantage_implementations() {
  std::vector<Implementation> all = {implementation("eager", {})};
  all.push_back(faulty("every_n_sequences", {.fault = GroupFault::by_stride},
                       {.twin = "eager",
                        .thread = "https://github.com/radixark/miles/pull/1573",
                        .cause = "pairing by position",
                        .trigger = "groups of unequal size, or whose members are not side by side",
                        .killers = {"reference_agreement", "permutation_invariance"}}));
  all.push_back(faulty("deviation_of_others", {.fault = GroupFault::others_deviation},
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA-NeMo/RL/issues/1518",
                        .cause = "wrong deviation",
                        .trigger = "a group of two or more: where the others are equal it is 0",
                        .killers = {"reference_agreement", "bounds_hold"}}));
  all.push_back(faulty("deviation_of_batch", {.fault = GroupFault::batch_deviation},
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/5775",
                        .cause = "wrong deviation",
                        .trigger = "two groups whose rewards are spread otherwise",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("deviation_of_one", {.variance = VarianceFault::of_one},
                       {.twin = "eager",
                        .thread = "https://github.com/Tencent-Hunyuan/UniRL/issues/330",
                        .cause = "empty divisor",
                        .trigger = "a group with one member: 0/0",
                        .killers = {"finite_forward"}}));
  return all;
}

}  // namespace lossgate::impl
