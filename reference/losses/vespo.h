// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"
#include "reference/losses/token_terms.h"
#include "reference/opposed_factors.h"

namespace lossgate::reference {

/// VESPO: REINFORCE under a soft weight of the whole sequence that no gradient flows through.
///
/// Formula: x[s,t] = -phi A log_prob, reduced over valid positions; phi = w^k exp(lambda (1 - w))
///   is a constant to the gradient; k and lambda are k_positive and lambda_positive where A >= 0,
///   else k_negative and lambda_negative; log w = clamp(sum over the valid tokens of the sequence
///   of clamp(log_prob - old_log_prob, +-log_ratio_clamp), log 1e-8, 20).
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, advantages dimensionless.
/// Gradient: for log_prob: -phi A; zero where masked.
/// Error: trainers form phi as exp(lambda + k log w - lambda w), since w^k by itself overflows
///   where phi is 0, and what it multiplies underflows where phi does not. An error of log w comes
///   back (k + lambda w) times as large, relative to phi, which vanishes where that is many times.
///   A token that is impossible in the new policy leaves phi above 0, by the least w, so the term
///   is infinite, and only its gradient is a number; where phi underflows the term is nothing: zero
///   times infinity.
/// Source: VESPO (arXiv:2602.10693) and its `compute_policy_loss_vespo` (FloyedShen/VESPO); TRL and
///   Liger Kernel `get_gamma_weights`; Unsloth Zoo, which calls TRL's.
struct Vespo {
  static LossSignature signature() {
    return {
        .id = "vespo",
        .title = "VESPO: REINFORCE under a soft, detached weight of the sequence",
        .formula =
            "-detach(w^k exp(lambda (1 - w))) A log_prob, w of the whole sequence, k and lambda by "
            "the sign of A",
        .source = "arXiv:2602.10693; TRL, Liger, Unsloth",
        .forms = {kExponent, kProduct},
        .options = {real_option("k_positive", 2.0, 0.0, 5.0, "power of w where A >= 0"),
                    real_option("lambda_positive", 3.0, 0.1, 10.0, "decay in w where A >= 0"),
                    real_option("k_negative", 3.0, 0.0, 5.0, "power of w elsewhere"),
                    real_option("lambda_negative", 2.0, 0.1, 10.0, "decay in w elsewhere"),
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
    const auto log_prob = in.field("log_prob"), advantage = in.field("advantage");
    const SequenceWeight<S> weight_of(in);
    const Gamma<S> positive(in, "k_positive", "lambda_positive"),
        negative(in, "k_negative", "lambda_negative");
    std::vector<S> log_w;
    for (std::int64_t s = 0; s < in.sequences(); ++s) log_w.push_back(weight_of(s));
    evaluate_by_token(in, out, "log_prob", [&](const S& weight, std::int64_t s, std::int64_t t) {
      const S a = advantage(s, t);
      const Gamma<S>& gamma = value_of(a) >= 0 ? positive : negative;
      const S phi = stop_gradient(gamma(log_w[static_cast<std::size_t>(s)]));
      return reinforced(log_prob(s, t), phi, a, in.upstream(), weight);
    });
  }

 private:
  /// Of phi.
  static constexpr const char *kExponent = "exp(lambda + k log w - lambda w)",
                              *kProduct = "w^k exp(lambda - lambda w)";

  /// The logarithm of the weight of a sequence, within its bounds.
  template <class S>
  class SequenceWeight {
   public:
    explicit SequenceWeight(const Inputs<S>& in)
        : in_(in),
          log_prob_(in.field("log_prob")),
          old_log_prob_(in.field("old_log_prob")),
          limit_(in, "log_ratio_clamp", Stage::log_prob),
          low_(constant<S>(-kDecades * std::log(Real(10)))),
          high_(constant<S>(kLargest)) {}

    S operator()(std::int64_t s) const { return clamp(log_ratio(s), low_, high_); }

   private:
    static constexpr Real kDecades = 8.0L, kLargest = 20.0L;  ///< w from 10^-8 to e^20

    /// Of the sequence. Without a clamp it may be the difference of two sums, where no form is
    /// declared.
    S log_ratio(std::int64_t s) const {
      const S of_ratios = sum(s, [&](std::int64_t t) { return log_ratio_of_token(s, t); });
      if (limit_.bounded() || !in_.undeclared()) return of_ratios;
      const S current = sum(s, [&](std::int64_t t) { return log_prob_(s, t); }),
              old = sum(s, [&](std::int64_t t) { return old_log_prob_(s, t); });
      return wider(of_ratios, difference_of_sums(current, old));
    }

    S log_ratio_of_token(std::int64_t s, std::int64_t t) const {
      const S ratio = store(Stage::log_prob, log_prob_(s, t) - old_log_prob_(s, t));
      return limit_.bounded() ? limit_(ratio).value : ratio;
    }

    template <class Term>
    S sum(std::int64_t s, const Term& term) const {
      Sum<S> terms = in_.row_sum();
      for (std::int64_t t = 0; t < in_.tokens(); ++t) {
        if (in_.valid(s, t)) terms.add(term(t));
      }
      return terms.value();
    }

    const Inputs<S>& in_;
    FieldReader<S> log_prob_, old_log_prob_;
    Limit<S> limit_;
    S low_, high_;
  };

  /// phi, of the logarithm of w. The terms of an exponent may meet in any order. Where no form is
  /// declared that logarithm may be made again of w, which was bounded instead.
  template <class S>
  class Gamma {
   public:
    Gamma(const Inputs<S>& in, std::string_view k, std::string_view lambda)
        : in_(in), k_(in.option(k)), lambda_(in.option(lambda)) {}

    S operator()(const S& log_w) const {
      const S w = exp(log_w), decay = lambda_ * w;
      const auto by_exponent = [&](const S& power) {
        return S(exp(sum_in_any_order(std::array{lambda_, power, S(-decay)})));
      };
      if (in_.form(kExponent)) return by_exponent(k_ * log_w);
      const S power = k_ * wider(log_w, log(w));
      // exp(lambda) may be a factor by itself.
      return wider(by_exponent(power),
                   opposed_product(S(exp(lambda_)), S(exp(power)), S(exp(S(-decay)))));
    }

   private:
    const Inputs<S>& in_;
    S k_, lambda_;
  };
};

}  // namespace lossgate::reference
