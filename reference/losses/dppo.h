// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"
#include "reference/losses/token_terms.h"
#include "reference/monotonic.h"

namespace lossgate::reference {

/// DPPO: the policy gradient of the tokens whose probability is within a trust region, or comes
/// back to it.
///
/// Formula: x[s,t] = -M c A log_prob, reduced over valid positions, or, `surrogate` weight,
///   -M c A; c = min(w, weight_high), w = exp(clamp(log_prob - old_log_prob, +-log_ratio_clamp)),
///   is a constant to the gradient in the first. M is 0 where A > 0, p > q and
///   D > divergence_high, and where A < 0, p < q and D > divergence_low, else 1; p and q are the
///   token's probabilities, exp of log_prob and old_log_prob. `divergence` tv: D = |p - q|, kl:
///   D = q log(q / p) + (1 - q) log((1 - q + epsilon) / (1 - p + epsilon)).
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, advantages dimensionless.
/// Gradient: for log_prob: -M c A; where the weight is no constant, 0 beyond its bounds. M is
///   selected: no gradient flows through it.
/// Error: a token whose D is as good as its bound may count or not. 1 - p has lost its digits where
///   p rounds to 1, and D with it where epsilon does not hold it; that of a token
///   that has become certain is infinite without an epsilon, which the paper does not have. One
///   that is dropped is 0 whatever its weight or log_prob is: infinity times the 0 of a mask is
///   NaN.
/// Source: Qi et al. 2026 (arXiv:2602.04879) eq. 11-14, 5.4 (weight_high); verl
///   `compute_policy_loss_dppo_tv` and `compute_policy_loss_dppo_kl` (surrogate log_prob), SkyRL
///   `dppo_policy_loss` (surrogate weight), both with an epsilon of 1e-8.
struct Dppo {
  static LossSignature signature() {
    return {
        .id = "dppo",
        .title = "DPPO: the policy gradient of tokens within a bound of their divergence",
        .formula =
            "-M detach(min(w, weight_high)) A log_prob, M = 0 where the token's divergence passes "
            "a bound in the direction of A",
        .source = "arXiv:2602.04879 eq. 11-14; verl, SkyRL",
        .options = {choice_option("divergence", {"tv", "kl"},
                                  "of the old probability of the token, q, and the new one, p; "
                                  "tv: |p - q|, kl: that of the token and all others"),
                    bound_option("divergence_low", "A < 0"),
                    bound_option("divergence_high", "A > 0"),
                    real_option("epsilon", 1e-8, 0.0, 0.01,
                                "added to what either probability leaves of 1, for kl"),
                    choice_option("surrogate", {"log_prob", "weight"},
                                  "what the gradient flows through; log_prob: that, under a "
                                  "constant weight, weight: the weight alone"),
                    usual_option({3.0, 5.0, 10.0}, limit_option("weight_high", 20.0, 1.0, 100.0,
                                                                "upper bound of the weight")),
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
    const BoundedWeight<S> weight_of(in);
    const TrustRegion<S> region(in);
    const bool through_weight = in.spec().choice("surrogate") == "weight";
    evaluate_by_token(in, out, "log_prob", [&](const S& share, std::int64_t s, std::int64_t t) {
      const S now = log_prob(s, t), old = old_log_prob(s, t), a = advantage(s, t);
      const S log_ratio = store(Stage::log_prob, now - old);
      const Term<S> c = weight_of(log_ratio);
      const S counts = region(now, old, log_ratio, a);
      if (!through_weight) {
        return reinforced(now, stop_gradient(S(c.value * counts)), a, in.upstream(), share);
      }
      const S kept = c.value * counts;
      return TokenTerm<S>{-(kept * a), -product(share, kept, a),
                          // All of it goes through the log-ratio.
                          store(Stage::log_prob, -through(c, in.upstream(), share, a, counts))};
    });
  }

 private:
  static Option bound_option(std::string name, const std::string& where) {
    return usual_option({0.15, 0.1, 0.05}, real_option(std::move(name), 0.2, 0.001, 1.0,
                                                       "bound of the divergence where " + where));
  }

  /// min(w, weight_high), where there is such a bound.
  template <class S>
  class BoundedWeight {
   public:
    explicit BoundedWeight(const Inputs<S>& in)
        : importance_(in),
          bounded_(!in.spec().is_none("weight_high")),
          high_(bounded_ ? weight_bound(in, "weight_high") : S(0)) {}

    Term<S> operator()(const S& log_ratio) const {
      const Term<S> w = importance_(log_ratio);
      if (!bounded_) return w;
      return {minimum(w.value, high_), w.slope * at_most(w.value, high_)};
    }

   private:
    ImportanceWeight<S> importance_;
    bool bounded_;
    S high_;
  };

  /// M: 1, 0 beyond a bound in the direction of the advantage, or, undecided, anything between.
  template <class S>
  class TrustRegion {
   public:
    explicit TrustRegion(const Inputs<S>& in)
        : kl_(in.spec().choice("divergence") == "kl"),
          low_(in.option("divergence_low")),
          high_(in.option("divergence_high")),
          epsilon_(in.option("epsilon")),
          one_(constant<S>(1.0L)) {}

    S operator()(const S& log_prob, const S& old_log_prob, const S& log_ratio,
                 const S& advantage) const {
      const bool rewarded = value_of(advantage) > 0;
      // One that is no number has no direction, and shows itself.
      if (!rewarded && !(value_of(advantage) < 0)) return selected<S>(1.0);
      const S p = exp(log_prob), q = exp(old_log_prob);
      if (!kl_) return rewarded ? at_most(S(p - q), high_) : at_least(S(p - q), S(-low_));
      const auto moved = compare(p, q);
      const auto away = rewarded ? Order::above : Order::below;
      if (moved != away && moved != Order::undecided) return selected<S>(1.0);
      const S divergence = kl(log_prob, old_log_prob, log_ratio, q);
      const S& bound = rewarded ? high_ : low_;
      if (moved == away) return at_most(divergence, bound);
      return compare(divergence, bound) == Order::below ? selected<S>(1.0)
                                                        : anything_between<S>(0.0, 1.0);
    }

   private:
    /// A logarithm of a quotient or the difference of two.
    S kl(const S& log_prob, const S& old_log_prob, const S& log_ratio, const S& q) const {
      const S rest = rest_of(log_prob), old_rest = rest_of(old_log_prob);
      const double least = least_of(epsilon_);
      const S quotient =
          log_from(S((old_rest + epsilon_) / one_), least) - log_from(S(rest + epsilon_), least);
      return weighed(q, S(-log_ratio)) + weighed(old_rest, quotient);
    }

    /// What exp(x) leaves of 1, with its digits or as a difference.
    S rest_of(const S& x) const {
      if (value_of(x) == 0) return S(0);
      return wider(S(-expm1(x)), S(one_ - exp(x)));
    }

    bool kl_;
    S low_, high_, epsilon_, one_;
  };
};

}  // namespace lossgate::reference
