// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"
#include "reference/losses/token_terms.h"

namespace lossgate::reference {

/// SAPO: the policy objective under a soft gate instead of a clip.
///
/// Formula: x[s,t] = -A (4 / tau) sigmoid(tau (w - 1)), reduced over valid positions; tau is
///   tau_positive where A > 0, else tau_negative; w = exp(clamp(log_prob - old_log_prob,
///   +-log_ratio_clamp)).
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, advantages dimensionless.
/// Gradient: for log_prob: -A 4 g (1 - g) w inside the clamp, g the sigmoid; zero where masked.
/// Error: without a clamp w overflows where the gate has long closed, and 0 times infinity is NaN
///   in the backward.
/// Source: Gao et al. 2025 (arXiv:2511.20347) eq. 5-7; TRL `get_sapo_token_loss`, verl
///   `compute_policy_loss_sapo`.
struct Sapo {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    return {
        .id = "sapo",
        .title = "SAPO: the policy objective under a soft gate",
        .formula = "-A (4 / tau) sigmoid(tau (w - 1)), tau by the sign of A",
        .source = "arXiv:2511.20347 eq. 5-7; TRL, verl, Liger, AReaL",
        .options = {real_option("tau_positive", 1.0, 0.1, 10.0, "steepness where A > 0"),
                    real_option("tau_negative", 1.05, 0.1, 10.0, "steepness elsewhere"),
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
    const Gate<S> positive(in, "tau_positive"), negative(in, "tau_negative");
    evaluate_by_token(in, out, "log_prob", [&](const S& weight, std::int64_t s, std::int64_t t) {
      const S a = advantage(s, t);
      const auto w = importance(store(Stage::log_prob, log_prob(s, t) - old_log_prob(s, t)));
      TokenTerm<S> term = choose(
          value_of(a) > 0, [&] { return positive(w, a, in.upstream(), weight); },
          [&] { return negative(w, a, in.upstream(), weight); });
      term.gradient =
          store(Stage::log_prob, term.gradient);  // all of it goes through the log-ratio
      return term;
    });
  }

 private:
  /// -A (4 / tau) sigmoid(tau (w - 1)), and upstream x weight times its derivative.
  template <class S>
  class Gate {
   public:
    Gate(const Inputs<S>& in, std::string_view option)
        : tau_(in.option(option)),
          closed_(1.0 + kClosed / in.spec().number(option)),
          one_(constant<S>(1.0L)),
          four_(constant<S>(4.0L)) {}

    TokenTerm<S> operator()(const Term<S>& w, const S& advantage, const S& upstream,
                            const S& weight) const {
      const auto silent = [&] {
        const S zero = silenced(-advantage, w.value);
        return TokenTerm<S>{zero, weight * zero, through(w, upstream, weight, zero)};
      };
      const S scale = four_ / tau_;
      const auto closed = [&] {
        return TokenTerm<S>{-advantage * scale, -product(weight, advantage, scale),
                            scaled_by(S(0), upstream, weight, advantage, scale, tau_)};
      };
      return choose(value_of(advantage) == 0, silent, [&] {
        return choose(compare(w.value, closed_) == Order::above, closed,
                      [&] { return open(w, advantage, upstream, weight, scale); });
      });
    }

   private:
    TokenTerm<S> open(const Term<S>& w, const S& advantage, const S& upstream, const S& weight,
                      const S& scale) const {
      const S gap = w.value - one_, gate = sigmoid(tau_ * gap);
      // Of an expm1, whose derivative a backward makes of what it has: expm1 + 1.
      const S slope = choose(
          value_of(w.slope) == 0, [&] { return w.slope; },
          [&] { return wider(w.slope, S(gap + one_)); });
      return {-product(advantage, scale, gate), -product(weight, advantage, scale, gate),
              through(Term<S>{w.value, slope}, upstream, weight, -advantage, scale, tau_, gate,
                      one_ - gate)};
    }

    /// Where g (1 - g) w, which is below exp(-z) (1 + z / tau), is no number of any format.
    static constexpr double kClosed = 100'000.0;

    S tau_, closed_, one_, four_;
  };
};

}  // namespace lossgate::reference
