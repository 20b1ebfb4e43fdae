// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reference/losses/kl_terms.h"
#include "reference/losses/policy_terms.h"
#include "reference/stored_parts.h"

namespace lossgate::reference {

/// The terms of a batch: all of each, and its two parts, which trainers that log both add up apart.
template <class S>
struct PolicySums {
  explicit PolicySums(const Inputs<S>& in)
      : terms(in.batch_sum()), policy(in.batch_sum()), penalty(in.batch_sum()) {}

  Sum<S> terms, policy, penalty;
};

/// The clipped policy loss with its KL penalty as a function of one sequence's log-probs, wherever
/// those come from. See Grpo for the formula.
template <class S>
class PolicyObjective {
 public:
  /// Each use of a log-prob that is a field may widen it by itself, and hands its gradient back as
  /// the field has it.
  PolicyObjective(const Inputs<S>& in, const Outputs<S>& out, bool log_prob_is_field)
      : in_(in),
        old_log_prob_(in.field("old_log_prob")),
        ref_log_prob_(in.field("ref_log_prob")),
        advantage_(in.field("advantage")),
        importance_(in),
        surrogate_(in),
        kl_(in),
        kl_penalty_(in.option("kl_penalty")),
        penalised_(in.spec().number("kl_penalty") != 0.0),
        kl_weighted_(in.spec().number("kl_weighted") != 0.0),
        sequence_level_(in.spec().choice("level") == "sequence"),
        on_policy_(in.absent("old_log_prob")),
        handed_back_apart_(log_prob_is_field && penalised_),
        per_token_(out.writer("per_token")) {}

  /// Adds the sequence's weighted terms to `sums`, writes them unweighted, and makes `gradient`
  /// that of the objective with respect to each log-prob. Entries at masked positions are not read.
  void row(std::int64_t s, const std::vector<S>& log_prob, PolicySums<S>& sums,
           std::vector<S>& gradient) const {
    gradient.assign(log_prob.size(), S(0));
    const bool live = in_.row_tokens(s) > 0;
    const S weight = live ? in_.token_weight(s) : S(0);
    const S upstream = in_.upstream();
    const S scale = upstream * weight, kl_scale = penalised_ ? S(scale * kl_penalty_) : S(0);
    // What comes back to the terms of the policy and to KL estimates, where each are stored.
    const auto of_policy = [&](const S& g) { return stored_within(Stage::per_token, g, scale); };
    const auto of_kl = [&](const S& g) { return stored_within(Stage::per_token, g, kl_scale); };
    const Term<S> shared =
        live && sequence_level_ ? sequence_weight(s, log_prob) : Term<S>{S(0), S(0)};
    Sum<S> through_shared = in_.row_sum();
    for (std::int64_t t = 0; t < in_.tokens(); ++t) {
      if (!in_.valid(s, t)) {
        per_token_(S(0), s, t);
        continue;
      }
      const auto i = static_cast<std::size_t>(t);
      const Term<S> w = sequence_level_ ? shared : importance_(log_ratio(s, t, log_prob[i]));
      const Token token = at(s, t, log_prob[i], w.value, weight);
      per_token_(store(Stage::per_token, token.value), s, t);
      const auto weighted = [&](const S& part) {
        const S whole = weighted_within(weight * part, token.policy, advantage_(s, t));
        return stored_within(Stage::per_token, whole, part);
      };
      sums.terms.add(weighted(token.value));
      if (penalised_) {
        sums.policy.add(weighted(token.policy));
        sums.penalty.add(stored_within(Stage::per_token, weight * token.penalty, token.penalty));
      }
      gradient[i] = back_to_ratio(
          of_kl(kl_weighted_ ? distributed(token.kl_slope, scale, kl_penalty_, w.value)
                             : distributed(token.kl_slope, scale, kl_penalty_)));
      const S by_kl = of_kl(through(w, scale, kl_penalty_, token.kl_weight_slope));
      if (sequence_level_) {
        through_shared.add(through(w, scale, token.policy_slope));
        through_shared.add(by_kl);
      } else {
        const S policy = weighted_within(through(w, scale, token.policy_slope),
                                         upstream * token.policy_slope * w.slope, advantage_(s, t));
        gradient[i] = scaled_sum(upstream, weight, back_to_ratio(of_policy(policy)),
                                 back_to_ratio(by_kl), gradient[i]);
      }
    }
    if (sequence_level_ && live) {
      // The importance weight may be divided by the count before it meets the sum.
      const S sum = through_shared.scaled(upstream, weight, shared.slope);
      const S common = of_policy(weighted_within(sum / row_count(s), sum, shared.slope));
      for (std::int64_t t = 0; t < in_.tokens(); ++t) {
        S& g = gradient[static_cast<std::size_t>(t)];
        if (in_.valid(s, t)) g = scaled_sum(upstream, weight, g, back_to_ratio(common), S(0));
      }
    }
  }

  void write_loss(const Outputs<S>& out, const PolicySums<S>& sums) const {
    if (!penalised_) return out.loss(sums.terms);
    out.loss(sums.terms, sums.policy, sums.penalty, kl_penalty_);
  }

 private:
  /// The term of one position, its parts, of the policy and the penalty, the derivatives of its two
  /// halves with respect to the importance weight, and that of the KL estimate, without its weight,
  /// with respect to log_prob. They stay apart, since the chain rule multiplies each by all that
  /// stands before it.
  struct Token {
    S value, policy, penalty, policy_slope, kl_weight_slope;
    Cancelling<S> kl_slope;
  };

  S log_ratio(std::int64_t s, std::int64_t t, const S& log_prob) const {
    return store(Stage::log_prob,
                 on_policy_ ? own_log_ratio(log_prob) : S(log_prob - old_log_prob_(s, t)));
  }

  /// What comes back to a log-ratio, the weight's or the KL's, has its format, whatever of it
  /// cancels behind that.
  S back_to_ratio(const S& slope) const {
    const S stored = store(Stage::log_prob, slope);
    return handed_back_apart_ ? store(Stage::gradient, stored) : stored;
  }

  Token at(std::int64_t s, std::int64_t t, const S& log_prob, const S& weight,
           const S& scale) const {
    const Term<S> policy = surrogate_(weight, advantage_(s, t), scale);
    // The penalty, which is 0, multiplies what is left out.
    if (!penalised_) return {policy.value, policy.value, {}, policy.slope, {}, {}};
    const auto k = kl_(log_prob, ref_log_prob_(s, t), kl_weighted_ ? &weight : nullptr);
    const S penalty = kl_penalty_ * k.value;
    const S value = of_stored_parts(Stage::per_token, S(policy.value + penalty), policy.value,
                                    penalty, k.value);
    return {value, policy.value, penalty, policy.slope, k.weight_slope, k.slope};
  }

  S row_count(std::int64_t s) const { return constant<S>(static_cast<Real>(in_.row_tokens(s))); }

  /// exp of the clamped mean log-ratio, with its derivative with respect to that mean, which may be
  /// the difference of two means.
  Term<S> sequence_weight(std::int64_t s, const std::vector<S>& log_prob) const {
    const auto mean = [&](const auto& term) {
      Sum<S> sum = in_.row_sum();
      for (std::int64_t t = 0; t < in_.tokens(); ++t) {
        if (in_.valid(s, t)) sum.add(term(t, log_prob[static_cast<std::size_t>(t)]));
      }
      return S(sum.value() / row_count(s));
    };
    const S of_ratios = mean([&](std::int64_t t, const S& own) { return log_ratio(s, t, own); });
    if (on_policy_ || !in_.undeclared()) return importance_(of_ratios);
    const S current = mean([](std::int64_t, const S&own) { return own; }),
            old = mean([&](std::int64_t t, const S&) { return old_log_prob_(s, t); });
    return importance_(wider(of_ratios, difference_of_sums(current, old)));
  }

  const Inputs<S>& in_;
  FieldReader<S> old_log_prob_, ref_log_prob_, advantage_;
  ImportanceWeight<S> importance_;
  ClippedSurrogate<S> surrogate_;
  KlEstimator<S> kl_;
  S kl_penalty_;
  bool penalised_, kl_weighted_, sequence_level_, on_policy_, handed_back_apart_;
  typename Outputs<S>::Writer per_token_;
};

}  // namespace lossgate::reference
