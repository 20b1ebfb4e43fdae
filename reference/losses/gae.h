// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/decayed_sum.h"
#include "reference/losses/moments.h"
#include "reference/losses/options.h"
#include "reference/problem.h"

namespace lossgate::reference {

/// Generalised advantage estimation over the valid tokens of each sequence (an operation: tensors
/// in, tensors out).
///
/// Formula: with u the next valid token of the sequence after t, behind the last a value and an
///   advantage of 0,
///   a[t] = reward[t] + gamma value[u] - value[t] + gamma lambda a[u], return[t] = a[t] + value[t];
///   advantage = a, or, whitened, (a - mean) / sqrt(variance + epsilon) over all valid tokens, with
///   one less for a divisor, of one token 0.
/// Shapes: all [sequences, tokens]. Units: of the reward, whitened none. Gradient: none. Masked
///   positions get 0.
/// Error: masked positions (padding, tool output) are no transitions: a value or a reward standing
///   there must not be discounted into earlier tokens, nor counted by the whitening, nor made other
///   than 0 by it.
/// Source: Schulman et al. 2016 (arXiv:1506.02438); verl `compute_gae_advantage_return`;
///   alibaba/ROLL#447; radixark/miles#1827.
struct Gae {
  static LossSignature signature() {
    return {
        .id = "gae",
        .title = "generalised advantage estimation over valid tokens",
        .formula =
            "a[t] = reward[t] + gamma value[u] - value[t] + gamma lambda a[u], u the next "
            "valid token",
        .source = "arXiv:1506.02438; verl compute_gae_advantage_return",
        // Trainers of language models seldom discount: of a long answer all of it counts.
        .options = {usual_option({0.99}, real_option("gamma", 1.0, 0.0, 1.0,
                                                     "discount of what comes one token later")),
                    usual_option({1.0}, real_option("lambda", 0.95, 0.0, 1.0,
                                                    "decay of later errors; 0: one step")),
                    flag_option("whiten", "give the advantages mean 0 and deviation 1"),
                    real_option("epsilon", 1e-8, 1e-9, 0.01, "added to the whitening's variance")},
        .fields = {per_token_field("reward", Quantity::reward, "of the token"),
                   per_token_field("value", Quantity::value, "the critic's prediction"),
                   mask_field()},
        .outputs = {{.name = "advantage",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "0 where masked",
                     .range = range},
                    {.name = "return",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "what the critic is to predict; 0 where masked"}},
        .mask = "mask",
        .splittable = false,
    };
  }

  static std::optional<std::pair<double, double>> range(const Case& c) {
    if (c.spec.number("whiten") == 0.0) return std::nullopt;
    return range_of_standardised(c.shape[Axis::sequences] * c.shape[Axis::tokens], true);
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto reward = in.field("reward"), value = in.field("value");
    const S gamma = in.option("gamma"), lambda = in.option("lambda"), decay = gamma * lambda,
            rest = constant<S>(1.0L) - lambda;
    const auto write_return = out.writer("return");
    std::vector<S> advantages;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      S next_value = S(0), next_advantage = S(0), next_target = S(0);
      DecayedSum<S> sums(decay, in.tokens());
      for (std::int64_t t = in.tokens() - 1; t >= 0; --t) {
        if (!in.valid(s, t)) {
          write_return(S(0), s, t);
          continue;
        }
        const S now = reward(s, t), own = value(s, t), ahead = gamma * next_value,
                later = decay * next_advantage;
        // Or as what the critic is to predict, reward + gamma ((1 - lambda) value' + lambda
        // target'), less what it does.
        next_target = sum_in_any_order(std::array{now, S(rest * ahead), S(decay * next_target)});
        next_advantage =
            wider(sum_in_any_order(std::array{now, ahead, S(-own), later}), S(next_target - own));
        next_value = own;
        advantages.push_back(
            sums.before(sum_in_any_order(std::array{now, ahead, S(-own)}), next_advantage));
        // The return may be made of the advantage as it is handed back.
        const S target = store(Stage::per_token, advantages.back()) + own;
        write_return(store(Stage::per_token, wider(target, next_target)), s, t);
      }
    }
    if (in.spec().number("whiten") != 0.0) whiten(in, advantages);
    write_advantages(in, out, advantages);
  }

 private:
  static Field per_token_field(std::string name, Quantity quantity, std::string doc) {
    return {.name = std::move(name),
            .role = Role::constant,
            .quantity = quantity,
            .axes = {Axis::sequences, Axis::tokens},
            .infinity = Infinity::surfaces,
            .doc = std::move(doc)};
  }

  template <class S>
  static void whiten(const Inputs<S>& in, std::vector<S>& advantages) {
    const Whitener<S> whitened(
        static_cast<std::int64_t>(advantages.size()), in.sequences() * in.tokens(),
        in.option("epsilon"),
        [&](std::int64_t i) { return advantages[static_cast<std::size_t>(i)]; });
    for (S& advantage : advantages) advantage = whitened(advantage);
  }

  /// `advantages` of the valid tokens, each sequence's last one first.
  template <class S>
  static void write_advantages(const Inputs<S>& in, const Outputs<S>& out,
                               const std::vector<S>& advantages) {
    const auto write = out.writer("advantage");
    std::size_t next = 0;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = in.tokens() - 1; t >= 0; --t) {
        write(in.valid(s, t) ? store(Stage::per_token, advantages[next++]) : S(0), s, t);
      }
    }
  }
};

}  // namespace lossgate::reference
