// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"
#include "reference/problem.h"

namespace lossgate::reference {

/// Whether nobody has another number than 0.
template <class S>
bool is_surely_zero(const S& a) {
  return value_of(a) == 0;
}

inline bool is_surely_zero(const Tracked& a) {
  return a.v == 0.0L && a.err == 0.0 && a.half == 0.0;
}

/// What tokens weigh that another engine sampled than the one which trains on them (an operation:
/// tensors in, tensors out).
///
/// Formula: w = exp(clamp(x, +-log_ratio_clamp)), x = old_log_prob - sampler_log_prob of the token,
///   or, `level` sequence, their sum over the valid tokens of the sequence, or, `level` geometric,
///   their mean. `beyond` truncate: weight = clamp(w, weight_low, weight_high); `beyond` drop:
///   weight = w where weight_low <= w <= weight_high, else 0.
/// Shapes: all [sequences, tokens]. Units: log-probs in nats. Gradient: none. Masked positions get
///   0.
/// Error: a weight that overflows is one that is bounded or dropped: infinity times the 0 of a
///   filter is NaN. What stands behind the mask (a sentinel of the sampler) belongs to no sum.
///   A bound may be met by the log-ratio, as its logarithm; a sum of log-ratios may be the
///   difference of two sums. A weight of two policies that are one is exactly 1.
/// Source: TIS, Yao et al. 2025 ("Your Efficient RL Framework Secretly Brings You Off-Policy RL
///   Training"); IcePop, arXiv:2510.18855; verl `compute_rollout_correction_weights`, TRL
///   `vllm_importance_sampling_mode`; OpenRLHF/OpenRLHF#1314.
struct RolloutCorrection {
  static LossSignature signature() {
    return {
        .id = "rollout_correction",
        .title = "importance weights of tokens that another engine sampled: TIS, IcePop",
        .formula =
            "clamp(w, weight_low, weight_high), or w between them, else 0; "
            "w = exp(old_log_prob - sampler_log_prob)",
        .source = "verl compute_rollout_correction_weights; TRL; OpenRLHF/OpenRLHF#1314",
        .options = {choice_option(
                        "level", {"token", "sequence", "geometric"},
                        "of whose log-ratio the weight is made; token: its own, "
                        "sequence: the sum over the sequence, geometric: the mean over it"),
                    choice_option("beyond", {"truncate", "drop"},
                                  "what becomes of a weight outside the bounds; truncate: the "
                                  "bound, drop: 0"),
                    usual_option({0.5}, real_option("weight_low", 0.0, 0.0, 1.0,
                                                    "lower bound of the weight")),
                    usual_option({3.0, 5.0, 1.0}, real_option("weight_high", 2.0, 1.0, 100.0,
                                                              "upper bound of the weight")),
                    log_ratio_clamp_option()},
        .fields = {log_prob_field("old_log_prob", Role::constant,
                                  "of the taken token, as the trainer has it before the step"),
                   log_prob_field("sampler_log_prob", Role::constant,
                                  "of the taken token, as the engine that sampled it has it"),
                   mask_field()},
        .outputs = {{.name = "weight",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "of each token; 0 where masked",
                     .range = range}},
        .reach = {{"log-ratio", "sampler_log_prob", "old_log_prob"}},
        .mask = "mask",
    };
  }

  static std::optional<std::pair<double, double>> range(const Case& c) {
    return std::pair(0.0, c.spec.number("weight_high"));
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto write = out.writer("weight");
    const Weights<S> weights(in);
    const bool of_tokens = in.spec().choice("level") == "token";
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const bool live = in.row_tokens(s) > 0;
      const S shared = of_tokens || !live ? S(0) : weights.of_sequence(s);
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          write(S(0), s, t);
          continue;
        }
        write(store(Stage::per_token, of_tokens ? weights.of_token(s, t) : shared), s, t);
      }
    }
  }

 private:
  template <class S>
  class Weights {
   public:
    explicit Weights(const Inputs<S>& in)
        : in_(in),
          old_(in.field("old_log_prob")),
          sampler_(in.field("sampler_log_prob")),
          importance_(in),
          low_(weight_bound(in, "weight_low")),
          high_(weight_bound(in, "weight_high")),
          drops_(in.spec().choice("beyond") == "drop"),
          averages_(in.spec().choice("level") == "geometric") {}

    S of_token(std::int64_t s, std::int64_t t) const { return bounded(log_ratio(s, t)); }

    S of_sequence(std::int64_t s) const {
      const S of_ratios = sum(s, [&](std::int64_t t) { return log_ratio(s, t); });
      // Numbers that are the same have the same sum, and the same mean.
      if (!in_.undeclared() || is_surely_zero(of_ratios)) return bounded(of_ratios);
      const S old = sum(s, [&](std::int64_t t) { return old_(s, t); }),
              sampler = sum(s, [&](std::int64_t t) { return sampler_(s, t); });
      return bounded(wider(of_ratios, difference_of_sums(old, sampler)));
    }

   private:
    S log_ratio(std::int64_t s, std::int64_t t) const {
      return store(Stage::log_prob, old_(s, t) - sampler_(s, t));
    }

    /// Over the valid tokens of the sequence, or their mean.
    template <class Term>
    S sum(std::int64_t s, const Term& term) const {
      Sum<S> terms = in_.row_sum();
      for (std::int64_t t = 0; t < in_.tokens(); ++t) {
        if (in_.valid(s, t)) terms.add(term(t));
      }
      const S whole = terms.value();
      if (!averages_ || is_surely_zero(whole)) return whole;
      return whole / constant<S>(static_cast<Real>(in_.row_tokens(s)));
    }

    S bounded(const S& log_ratio) const {
      // Whoever computes it, exp of 0 is 1, which a bound of 1 keeps.
      const S w = is_surely_zero(log_ratio) ? S(1) : importance_(log_ratio).value;
      if (!drops_) return clamp(w, low_, high_);
      // Selected, since a weight that is dropped may be infinite.
      if (compare(w, low_) == Order::below || compare(w, high_) == Order::above) return S(0);
      return w * clamp_slope(w, low_, high_);
    }

    const Inputs<S>& in_;
    FieldReader<S> old_, sampler_;
    ImportanceWeight<S> importance_;
    S low_, high_;
    bool drops_, averages_;
  };
};

}  // namespace lossgate::reference
