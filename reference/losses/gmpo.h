// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string_view>

#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"
#include "reference/stored_bounds.h"

namespace lossgate::reference {

/// GMPO: the policy objective under the geometric mean of a sequence's importance weights, each of
/// which is clipped where its advantage gains from it.
///
/// Formula: x[s] = -w[s] A[s], summed over sequences, or averaged over those with a valid position;
///   w[s] = exp(mean of c[s,t]), A[s] = mean of advantage[s,t], both over the valid positions of s;
///   d = log_prob - old_log_prob; c = min(d, clip_high) where advantage > 0, max(d, -clip_low)
///   where advantage < 0, and 0 where it is 0. A sequence has one advantage in the paper and in
///   TRL; verl has one of each token, and so has this.
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, advantages dimensionless, clip
///   distances in nats: they bound a log-ratio, where those of PPO bound the weight itself.
/// Gradient: for log_prob: -w A / n_s where d is inside its bound, which passes it on at the bound
///   itself (rule A4); else 0, as where masked or where the advantage is 0.
/// Error: a product of weights overflows or underflows where their geometric mean does neither. A
///   bound has one side: where the advantage is negative w may overflow, and an advantage of 0
///   silences it. One impossible token makes the weight of its sequence 0.
/// Source: Zhao et al. 2025 (arXiv:2507.20673) eq. 4; TRL `GMPOTrainer`, verl
///   `compute_policy_loss_geo_mean`.
struct Gmpo {
  static LossSignature signature() {
    const auto distance = [](std::string_view name, std::string_view doc) {
      return usual_option({0.2, 0.3},
                          real_option(std::string(name), 0.4, 0.0, 4.0, std::string(doc)));
    };
    return {
        .id = "gmpo",
        .title = "GMPO: the policy objective under a geometric mean of clipped weights",
        .formula =
            "-exp(mean of c) A, c = min(d, clip_high) where A > 0, max(d, -clip_low) where A < 0; "
            "d = log_prob - old_log_prob",
        .source = "arXiv:2507.20673 eq. 4; TRL GMPOTrainer; verl compute_policy_loss_geo_mean",
        .options = {distance("clip_low", "clip distance below a log-ratio of 0, nats"),
                    distance("clip_high", "clip distance above a log-ratio of 0, nats")},
        .fields = {log_prob_field("log_prob", Role::differentiable,
                                  "of the taken token, current policy"),
                   old_log_prob_field(), advantage_field(), mask_field()},
        .outputs = {{.name = "per_sequence",
                     .axes = {Axis::sequences},
                     .doc = "the term of each sequence before the reduction; 0 where masked"}},
        .reductions = {Reduction::sequence_mean, Reduction::sum},
        .reach = {{"log-ratio", "old_log_prob", "log_prob"}},
        .mask = "mask",
        .advantage = "advantage",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto per_sequence = out.writer("per_sequence"), gradient = out.gradient("log_prob");
    const LogRatios<S> log_ratios(in);
    const S weight = in.sequence_weight(), scale = in.upstream() * weight;
    Sum<S> loss(in.sequences());
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const SequenceTerm<S> term = in.row_tokens(s) > 0 ? term_of(in, log_ratios, weight, s)
                                                        : SequenceTerm<S>{S(0), S(0), S(0)};
      per_sequence(store(Stage::per_token, term.value), s);
      loss.add(stored_within(Stage::per_token, term.weighted, term.value));
      const S back = stored_within(Stage::per_token, term.gradient, scale);
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          gradient(S(0), s, t);
          continue;
        }
        const S flows = back * log_ratios(s, t).slope;
        gradient(in.gradient(store(Stage::log_prob, flows)), s, t);
      }
    }
    out.loss(loss);
  }

 private:
  template <class S>
  struct SequenceTerm {
    S value;
    S weighted;  ///< as it counts in the loss
    S gradient;  ///< of the objective, by the log-ratio of a token that no bound holds
  };

  /// The log-ratios of tokens, each within the bound that its advantage gives it.
  template <class S>
  class LogRatios {
   public:
    explicit LogRatios(const Inputs<S>& in)
        : log_prob_(in.field("log_prob")),
          old_log_prob_(in.field("old_log_prob")),
          advantage_(in.field("advantage")),
          low_(-bound(in, "clip_low")),
          high_(bound(in, "clip_high")) {}

    S advantage(std::int64_t s, std::int64_t t) const { return advantage_(s, t); }

    /// With the derivative with respect to the log-ratio as it is.
    Term<S> operator()(std::int64_t s, std::int64_t t) const {
      const S d = store(Stage::log_prob, log_prob_(s, t) - old_log_prob_(s, t));
      const auto sign = value_of(advantage_(s, t));
      if (sign == 0) return {silenced(S(0), d), S(0)};
      if (sign > 0) return {minimum(d, high_), at_most(d, high_)};
      return {maximum(d, low_), at_least(d, low_)};
    }

   private:
    static S bound(const Inputs<S>& in, std::string_view option) {
      return stored_bound(Stage::log_prob, in.option(option), in.spec().number(option));
    }

    FieldReader<S> log_prob_, old_log_prob_, advantage_;
    S low_, high_;
  };

  template <class S>
  static SequenceTerm<S> term_of(const Inputs<S>& in, const LogRatios<S>& log_ratios,
                                 const S& weight, std::int64_t s) {
    Sum<S> ratios = in.row_sum(), advantages = in.row_sum();
    for (std::int64_t t = 0; t < in.tokens(); ++t) {
      if (!in.valid(s, t)) continue;
      ratios.add(log_ratios(s, t).value);
      advantages.add(log_ratios.advantage(s, t));
    }
    const S count = constant<S>(static_cast<Real>(in.row_tokens(s))),
            share = constant<S>(1.0L) / count, a = advantages.value() / count,
            w = exp(S(ratios.value() / count));
    const auto silent = [&] {
      const S zero = silenced(S(-a), w);
      return SequenceTerm<S>{zero, weight * zero, product(in.upstream(), weight, zero, share)};
    };
    const auto loud = [&] {
      return SequenceTerm<S>{-(a * w), -product(weight, a, w),
                             through(Term<S>{w, w}, in.upstream(), weight, S(-a), share)};
    };
    // Advantages that cancel silence a weight beyond any number; of others no factor is left out.
    const auto cancels = value_of(a) == 0, beyond = value_of(w) == HUGE_VAL;
    return choose(cancels & beyond, silent, loud);
  }
};

}  // namespace lossgate::reference
