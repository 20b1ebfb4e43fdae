// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/losses/moments.h"
#include "reference/losses/options.h"
#include "reference/problem.h"

namespace lossgate::reference {

/// Advantages of the answers to one prompt, relative to each other (an operation).
///
/// Formula: advantage[s] = (reward[s] - b[s]) / (sigma + epsilon), over the n members of s's group;
///   b is their mean, or that of the others (leave-one-out); sigma their standard deviation with
///   n - 1 or n for a divisor, or `unscaled`: divided by nothing. The only member of a group gets
///   0, or its reward over 1 + epsilon.
/// Shapes: all [sequences]. Units: of the reward, or none. Gradient: none.
/// Error: a deviation with n - 1 is 0/0 for one member; E[r^2] - E[r]^2 of equal rewards goes
///   negative; groups need not lie side by side, nor be complete.
/// Source: DeepSeekMath (arXiv:2402.03300); arXiv:2503.20783 (no scale); TRL `GRPOTrainer` and
///   `RLOOTrainer`; verl `compute_grpo_outcome_advantage` and `compute_rloo_outcome_advantage`.
struct GroupAdvantage {
  static LossSignature signature() {
    return {
        .id = "group_advantage",
        .title = "advantages relative to the answers to the same prompt",
        .formula = "(reward - mean or leave-one-out mean) / (standard deviation + epsilon)",
        .source = "arXiv:2402.03300; verl compute_grpo_outcome_advantage",
        .options = {choice_option("baseline", {"mean", "leave_one_out"},
                                  "what is subtracted; mean: that of all members, "
                                  "leave_one_out: that of the others"),
                    choice_option("scale", {"std", "population_std", "unscaled"},
                                  "the divisor; std: the deviation by n - 1, population_std: by n, "
                                  "unscaled: none"),
                    real_option("epsilon", 1e-6, 1e-9, 0.01, "added to the deviation"),
                    choice_option("singleton", {"zero", "reward"},
                                  "the advantage of a group's only member, before the scale, "
                                  "whose deviation counts as 1; zero: 0, reward: its reward")},
        .fields = {{.name = "reward",
                    .role = Role::constant,
                    .quantity = Quantity::reward,
                    .axes = {Axis::sequences},
                    .infinity = Infinity::surfaces,
                    .doc = "of the whole answer"},
                   {.name = "group",
                    .role = Role::group,
                    .quantity = Quantity::group,
                    .axes = {Axis::sequences},
                    .dtypes = {Dtype::i64},
                    .doc = "number of the prompt that the sequence answers"}},
        .outputs = {{.name = "advantage",
                     .axes = {Axis::sequences},
                     .doc = "of each sequence",
                     .range = range}},
        .splittable = false,
    };
  }

  /// As if all were one group, the widest.
  static std::optional<std::pair<double, double>> range(const Case& c) {
    if (c.spec.choice("scale") == "unscaled" || c.spec.choice("singleton") == "reward") {
      return std::nullopt;
    }
    const std::int64_t sequences = c.shape[Axis::sequences];
    auto range = range_of_standardised(sequences, c.spec.choice("scale") == "std");
    if (range && c.spec.choice("baseline") == "leave_one_out") {
      const double more = static_cast<double>(sequences) / static_cast<double>(sequences - 1);
      range = std::pair(range->first * more, range->second * more);
    }
    return range;
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto group = in.field("group");
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      std::vector<std::int64_t> members;
      for (std::int64_t other = 0; other < in.sequences(); ++other) {
        if (group.integer(other) == group.integer(s)) members.push_back(other);
      }
      // A group is written whole, with its first member.
      if (members.front() == s) write_group(in, out, members);
    }
  }

 private:
  template <class S>
  static void write_group(const Inputs<S>& in, const Outputs<S>& out,
                          const std::vector<std::int64_t>& members) {
    const auto reward = in.field("reward");
    const auto write = out.writer("advantage");
    const std::string scale = in.spec().choice("scale");
    const S guard = in.option("epsilon");
    const auto count = static_cast<std::int64_t>(members.size());
    if (count == 1) {
      return write(store(Stage::per_token, of_one(in, reward(members.front()))), members.front());
    }
    const Moments<S> all = moments<S>(count, in.sequences(), scale == "std", [&](std::int64_t i) {
      return reward(members[static_cast<std::size_t>(i)]);
    });
    const S deviation = root_of_squares(all.variance) + guard;
    for (const std::int64_t s : members) {
      const bool of_all = in.spec().choice("baseline") == "mean";
      const S rest = constant<S>(static_cast<Real>(of_all ? count : count - 1));
      const S less_mean =
          of_all ? reward(s) - all.mean : beyond_others(in, reward, members, s, all.mean);
      const S distance = wider(less_mean, sum_of_differences(in, reward, members, s) / rest);
      const S advantage =
          scale == "unscaled" ? distance : over_at_least(distance, deviation, guard);
      write(store(Stage::per_token, advantage), s);
    }
  }

  /// The advantage of a group's only member.
  template <class S>
  static S of_one(const Inputs<S>& in, const S& reward) {
    if (in.spec().choice("singleton") == "zero") return S(0);
    if (in.spec().choice("scale") == "unscaled") return reward;
    return reward / (constant<S>(1.0L) + in.option("epsilon"));
  }

  /// The reward less the mean of the others, or n / (n - 1) times it less as many times the mean.
  template <class S>
  static S beyond_others(const Inputs<S>& in, const FieldReader<S>& reward,
                         const std::vector<std::int64_t>& members, std::int64_t s, const S& mean) {
    Sum<S> others(in.sequences());
    for (const std::int64_t other : members) {
      if (other != s) others.add(reward(other));
    }
    const S count = constant<S>(static_cast<Real>(members.size())),
            rest = constant<S>(static_cast<Real>(members.size() - 1)), times = count / rest;
    return wider(reward(s) - others.value() / rest, reward(s) * times - mean * times);
  }

  /// What the reward is beyond each member's, added up.
  template <class S>
  static S sum_of_differences(const Inputs<S>& in, const FieldReader<S>& reward,
                              const std::vector<std::int64_t>& members, std::int64_t s) {
    Sum<S> differences(in.sequences());
    for (const std::int64_t other : members) {
      if (other != s) differences.add(reward(s) - reward(other));
    }
    return differences.value();
  }
};

}  // namespace lossgate::reference
