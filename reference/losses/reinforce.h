// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/losses/token_terms.h"
#include "reference/products.h"

namespace lossgate::reference {

/// REINFORCE, the plain policy gradient (GPG), each token under a weight that is given.
///
/// Formula: x[s,t] = -A w log_prob, reduced over valid positions; -A log_prob where callers have
///   no weight.
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, the others dimensionless.
/// Gradient: for log_prob: -A w; zero where masked.
/// Error: the term of an impossible token is infinite, its gradient is not. Where A or w is 0 its
///   term is, too, and NaN as a product.
/// Source: Williams 1992 (doi:10.1007/BF00992696); GPG: Chu et al. 2025 (arXiv:2504.02546);
///   weights of truncated importance sampling: verl `compute_policy_loss_reinforce` and
///   `compute_policy_loss_gpg`.
struct Reinforce {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    return {
        .id = "reinforce",
        .title = "REINFORCE / GPG: the plain policy gradient, under a weight that is given",
        .formula = "-A importance_weight log_prob",
        .source = "doi:10.1007/BF00992696; arXiv:2504.02546; verl",
        .options = {max_length_option()},
        .fields = {log_prob_field("log_prob", Role::differentiable,
                                  "of the taken token, current policy"),
                   advantage_field(), importance_weight_field(), mask_field()},
        .outputs = {per_token_output()},
        .reductions = kTokenReductions,
        .reach = {{"|log-prob|", "log_prob", ""}},
        .mask = "mask",
        .advantage = "advantage",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto log_prob = in.field("log_prob"), advantage = in.field("advantage"),
               importance = in.field("importance_weight");
    const bool weighs = !in.absent("importance_weight");
    evaluate_by_token(in, out, "log_prob", [&](const S& share, std::int64_t s, std::int64_t t) {
      const S p = log_prob(s, t), a = advantage(s, t);
      if (!weighs) {
        return TokenTerm<S>{-(p * a), -scaled_by(p, share, a), -product(in.upstream(), share, a)};
      }
      return reinforced(p, S(importance(s, t)), a, in.upstream(), share);
    });
  }
};

}  // namespace lossgate::reference
