// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/losses/token_terms.h"
#include "reference/scaled_square.h"
#include "reference/stored_parts.h"

namespace lossgate::reference {

/// DRO: the policy gradient, held near the policy that sampled by the square of the log-ratio.
///
/// Formula: x[s,t] = w (-A log_prob + beta/2 d^2), reduced over valid positions; d = log_prob -
///   old_log_prob, w = importance_weight, 1 where callers have none.
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, the others dimensionless.
/// Gradient: for log_prob: w (beta d - A), through both log-probs of the formula; zero where
///   masked.
/// Error: beta/2 goes inside the square: (beta/2 d) d overflows only where the term does. A weight
///   of 0 silences what overflows. Of a token that is impossible in one policy the slope is
///   infinite, and so is the term, but for a new one of negative advantage, which is infinity less
///   infinity; in both they are undefined. Where the two parts cancel, the error is that of either.
/// Source: Richemond et al. 2024 (arXiv:2405.19107) section 3, whose tau is beta; Tinker's loss
///   "dro"; verl `compute_policy_loss_dro`, which has the weight.
struct Dro {
  static LossSignature signature() {
    return {
        .id = "dro",
        .title = "DRO: the policy gradient with a quadratic penalty of the log-ratio",
        .formula = "importance_weight (-A log_prob + beta / 2 (log_prob - old_log_prob)^2)",
        .source = "arXiv:2405.19107; Tinker dro; verl compute_policy_loss_dro",
        .options = {usual_option({1.0, 0.1}, real_option("beta", 0.05, 0.001, 10.0,
                                                         "coefficient of half the square")),
                    max_length_option()},
        .fields = {log_prob_field("log_prob", Role::differentiable,
                                  "of the taken token, current policy"),
                   log_prob_field("old_log_prob", Role::constant, "behaviour policy"),
                   advantage_field(), importance_weight_field(), mask_field()},
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
               advantage = in.field("advantage"), importance = in.field("importance_weight");
    const bool weighs = !in.absent("importance_weight");
    const Terms<S> terms(in);
    Sum<S> all = in.batch_sum(), policy = in.batch_sum(), penalty = in.batch_sum();
    const auto term_at = [&](const S& share, std::int64_t s, std::int64_t t) {
      const S p = log_prob(s, t), old = old_log_prob(s, t), a = advantage(s, t);
      return weighs ? terms(p, old, a, share, S(importance(s, t))) : terms(p, old, a, share);
    };
    write_by_token(in, out, "log_prob", term_at, [&](const PartedTerm<S>& term) {
      all.add(weighted(term));
      policy.add(term.policy);
      penalty.add(term.penalty);
    });
    out.loss(all, policy, penalty, selected<S>(1.0));
  }

 private:
  /// With its parts, as they count in the loss.
  template <class S>
  struct PartedTerm : TokenTerm<S> {
    S policy, penalty;
  };

  /// The terms of tokens, whose share in the loss is told, and perhaps their weight.
  template <class S>
  class Terms {
   public:
    explicit Terms(const Inputs<S>& in)
        : upstream_(in.upstream()),
          beta_(in.option("beta")),
          half_beta_(constant<S>(0.5L * static_cast<Real>(in.spec().number("beta")))) {}

    template <class... Weight>
    PartedTerm<S> operator()(const S& p, const S& old, const S& a, const S& share,
                             const Weight&... w) const {
      const S d = store(Stage::log_prob, S(p - old));
      const S gain = p * a, cost = scaled_square(half_beta_, d);
      const S square = constant<S>(0.5L) * d * d;  // it may be stored before beta comes
      const S whole = of_stored_parts(Stage::per_token, S(cost - gain), gain, cost, square);
      // The weight may meet the advantage, or beta, before the parts meet each other.
      const S policy = -gained(p, a, w...), penalty = scaled_square(half_beta_, d, w...);
      const S value = wider(S((whole * ... * w)), S(penalty + policy));
      return {{value, share * value, gradient(d, a, share, w...)},
              stored_within(Stage::per_token, S(share * policy), policy),
              stored_within(Stage::per_token, S(share * penalty), square)};
    }

   private:
    static S gained(const S& p, const S& a) { return p * a; }
    static S gained(const S& p, const S& a, const S& w) { return scaled_by(p, a, w); }

    /// In one piece, or handed back by the log-ratio and by the log-prob beside the advantage, each
    /// of which may widen the field by itself.
    template <class... Weight>
    S gradient(const S& d, const S& a, const S& share, const Weight&... w) const {
      const auto handed_back = [](const S& part) { return store(Stage::gradient, part); };
      const S by_ratio =
                  stored_within(Stage::per_token, scaled_by(d, beta_, upstream_, share, w...),
                                product(beta_, upstream_, share, w...)),
              by_policy = product(a, upstream_, share, w...);
      return wider(scaled_by(S(beta_ * d - a), upstream_, share, w...),
                   scaled_sum(upstream_, share, handed_back(store(Stage::log_prob, by_ratio)),
                              S(-handed_back(by_policy)), S(0)));
    }

    S upstream_, beta_, half_beta_;
  };
};

}  // namespace lossgate::reference
