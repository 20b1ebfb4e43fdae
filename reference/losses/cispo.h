// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"
#include "reference/losses/token_terms.h"

namespace lossgate::reference {

/// CISPO: REINFORCE under a clipped importance weight that no gradient flows through.
///
/// Formula: x[s,t] = -c A log_prob, reduced over valid positions; c = clamp(w, weight_low,
///   weight_high) is a constant to the gradient, w = exp(clamp(log_prob - old_log_prob,
///   +-log_ratio_clamp)).
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, advantages dimensionless.
/// Gradient: for log_prob: -c A; zero where masked.
/// Error: the bounds are those of the weight itself: 1 + epsilon in some trainers, 5 in others. A
///   token that is impossible in the new policy has c = 0 beside an infinite log_prob.
/// Source: MiniMax-M1 (arXiv:2506.13585) eq. 4-5; TRL `grpo_trainer.py`, verl
///   `compute_policy_loss_cispo`, SkyRL `compute_policy_loss_cispo`.
struct Cispo {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    return {
        .id = "cispo",
        .title = "CISPO: REINFORCE under a clipped, detached importance weight",
        .formula = "-detach(clamp(w, weight_low, weight_high)) A log_prob",
        .source = "arXiv:2506.13585 eq. 4-5; TRL, verl, SkyRL",
        .options = {real_option("weight_low", 0.0, 0.0, 1.0, "lower bound of the weight"),
                    real_option("weight_high", 5.0, 1.0, 100.0, "upper bound of the weight"),
                    log_ratio_clamp_option(), max_length_option()},
        .fields = {log_prob_field("log_prob", Role::differentiable,
                                  "of the taken token, current policy"),
                   old_log_prob_field(), advantage_field(), mask_field()},
        .outputs = {per_token_output()},
        .reductions = kTokenReductions,
        .reach = {{"log-ratio", "old_log_prob", "log_prob"}},
        .mask = "mask",
        .advantage = "advantage",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto log_prob = in.field("log_prob"), old_log_prob = in.field("old_log_prob"),
               advantage = in.field("advantage");
    const ImportanceWeight<S> importance(in);
    const S low = weight_bound(in, "weight_low"), high = weight_bound(in, "weight_high");
    evaluate_by_token(in, out, "log_prob", [&](const S& weight, std::int64_t s, std::int64_t t) {
      const S p = log_prob(s, t);
      const S w = importance(store(Stage::log_prob, p - old_log_prob(s, t))).value;
      const S c = stop_gradient(clamp(w, low, high));
      return reinforced(p, c, advantage(s, t), in.upstream(), weight);
    });
  }
};

}  // namespace lossgate::reference
