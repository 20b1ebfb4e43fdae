// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "reference/losses/logistic_loss.h"
#include "reference/losses/options.h"
#include "reference/problem.h"
#include "reference/products.h"
#include "reference/sums.h"
#include "reference/two_classes.h"

namespace lossgate::reference {

/// Odds-ratio preference optimisation, from the mean log-probs of answers.
///
/// Formula: x[s] = -beta log sigmoid(h), summed over pairs, or averaged, with
///   h = (c - r) - (log(1 - exp(c)) - log(1 - exp(r))), the logarithm of the ratio of the odds
///   p / (1 - p) of a chosen answer, p = exp(c), to those of a rejected one, exp(r); c and r are
///   means over tokens. The cross-entropy of the chosen answer, which trainers add, is a loss by
///   itself.
/// Shapes: all fields [sequences], one pair each. Units: log-probs in nats.
/// Gradient: for c -beta sigmoid(-h) / (1 - exp(c)), for r beta sigmoid(-h) / (1 - exp(r)). At
///   c = 0, of a chosen answer that is certain, the term is 0, and its slopes are their limits,
///   minus beta times the odds of the rejected one and 0. At r = 0 the term is infinite; where both
///   are 0, or both -infinity, there is none.
/// Error: log(1 - exp(x)), log1p of it too, has lost all digits where exp(x) rounds to 1, and is
///   -infinity there: log(-expm1(x)) keeps them. The backward of either is 0 times infinity at 0;
///   one that chooses between both by a where has the other's wherever exp(x) rounds to 1. Odds
///   underflow at -104 in f32.
/// Source: Hong et al. 2024 (arXiv:2403.07691) eq. 4-7; TRL `ORPOTrainer.odds_ratio_loss`; Liger
///   Kernel `LigerFusedLinearORPOFunction`.
struct Orpo {
  static LossSignature signature() {
    const auto field = [](std::string name, std::string doc) {
      Field log_prob = log_prob_field(std::move(name), Role::differentiable, std::move(doc));
      log_prob.axes = {Axis::sequences};
      log_prob.leaves_rest = true;
      return log_prob;
    };
    OutputField per_pair = non_negative_per_token_output();
    per_pair.name = "per_pair";
    per_pair.axes = {Axis::sequences};
    per_pair.doc = "the term of each pair before the reduction";
    return {
        .id = "orpo",
        .title = "ORPO: preference optimisation by the odds of answers",
        .formula =
            "-beta log sigmoid((c - r) - (log(1 - exp(c)) - log(1 - exp(r)))), c and r means over "
            "tokens",
        .source = "arXiv:2403.07691 eq. 4-7; TRL ORPOTrainer; Liger",
        .forms = {kByExpm1, kByExp},
        .options = {real_option("beta", 0.1, 0.001, 10.0,
                                "weight of the odds beside the answer's cross-entropy")},
        .fields = {field("chosen_log_prob", "mean over the tokens of the chosen answer"),
                   field("rejected_log_prob", "mean over the tokens of the rejected answer")},
        .outputs = {per_pair},
        .reductions = {Reduction::sequence_mean, Reduction::sum},
        .reach = {{"log-ratio", "rejected_log_prob", "chosen_log_prob"}},
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto chosen = in.field("chosen_log_prob"), rejected = in.field("rejected_log_prob");
    const auto per_pair = out.writer("per_pair"), by_chosen = out.gradient("chosen_log_prob"),
               by_rejected = out.gradient("rejected_log_prob");
    const Terms<S> terms(in);
    const S beta = in.option("beta");
    Sum<S> loss = in.batch_sum(), costs = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const S weight = in.token_weight(s), back = in.upstream() * weight;
      const Term<S> term = terms(chosen(s), rejected(s));
      // It may be stored before beta comes, and after that.
      const S scaled = beta * term.cost, value = stored_within(Stage::per_token, scaled, term.cost),
              weighted =
                  stored_within(Stage::per_token, product(weight, beta, term.cost), term.cost);
      per_pair(store(Stage::per_token, value), s);
      loss.add(stored_within(Stage::per_token, weighted, scaled));
      costs.add(stored_within(Stage::per_token, S(weight * term.cost), term.cost));
      const auto gradient = [&](const S& share, const S& slope) {
        const S whole = product(in.upstream(), weight, beta, share, slope),
                unweighted = stored_within(Stage::per_token, whole, S(back * beta));
        return store(Stage::log_prob, stored_within(Stage::per_token, unweighted, back));
      };
      by_chosen(in.gradient(S(-gradient(term.share_of_chosen, term.slope_of_chosen))), s);
      by_rejected(in.gradient(gradient(term.share_of_rejected, term.slope_of_rejected)), s);
    }
    out.loss(loss, in.batch_sum(), costs, beta);  // which may multiply all of it last
  }

 private:
  /// Of the logarithm of what a probability leaves of 1.
  static constexpr const char *kByExpm1 = "log(-expm1(x))", *kByExp = "log1p(-exp(x))";

  /// An answer of log-prob x.
  template <class S>
  struct Answer {
    S rest;   ///< log(1 - exp(x))
    S odds;   ///< exp(x) / (1 - exp(x))
    S slope;  ///< of x - rest: 1 / (1 - exp(x))
  };

  /// -log sigmoid(h), and the two factors of each of its slopes, by c downwards and by r upwards.
  template <class S>
  struct Term {
    S cost;
    S share_of_chosen, slope_of_chosen;
    S share_of_rejected, slope_of_rejected;
  };

  /// The terms of pairs, without beta.
  template <class S>
  class Terms {
   public:
    explicit Terms(const Inputs<S>& in) : in_(in), one_(selected<S>(1.0)) {}

    Term<S> operator()(const S& c, const S& r) const {
      const Answer<S> rejected = answer(r);
      return choose(
          value_of(c) == 0, [&] { return of_certain(c, rejected); },
          [&] { return of_likely(c, r, answer(c), rejected); });
    }

   private:
    /// Of a chosen answer of probability 1 the odds are infinite in every library: log1p of the
    /// inverse ratio of odds, 0, is that ratio.
    Term<S> of_certain(const S& c, const Answer<S>& rejected) const {
      const S ratio = rejected.odds * S(-expm1(c));
      return {ratio, rejected.odds, one_, ratio, rejected.slope};
    }

    Term<S> of_likely(const S& c, const S& r, const Answer<S>& chosen,
                      const Answer<S>& rejected) const {
      const S last = store(Stage::log_prob, S(c - r)) - (chosen.rest - rejected.rest);
      const auto with = [&](const S& cost, const S& share) {
        return Term<S>{cost, share, chosen.slope, share, rejected.slope};
      };
      if (!in_.undeclared()) return with(logistic_loss(S(-last)), logistic(S(-last)));
      // Odds of either answer, or a log-prob less what another leaves, may meet first; and a
      // softmax of both log-odds, or of h and 0, has it as it has DPO's.
      const S any = sum_in_any_order(std::array{c, S(-r), S(-chosen.rest), rejected.rest}),
              h = wider(last, any), a = c - chosen.rest, b = r - rejected.rest;
      const S share = wider(logistic(S(-h)), S(one_ - sigmoid(h)));
      const S cost =
          wider(logistic_loss(S(-h)), by_softmax_with_zero(logistic_loss_of_two_classes(S(-h)), h));
      return with(by_normaliser(cost, a, b, h),
                  by_softmax_with_zero(by_normaliser(share, a, b, h), h));
    }

    Answer<S> answer(const S& x) const {
      if (in_.form(kByExp)) return by_exp(x);
      const Answer<S> close = by_expm1(x);
      // Either, where one is as good as the other: who chooses does so at -log 2, say.
      return choose(
          in_.undeclared() || value_of(x) < kUnlikely,
          [&] {
            const Answer<S> other = by_exp(x);
            return Answer<S>{wider(close.rest, other.rest), wider(close.odds, other.odds),
                             wider(close.slope, other.slope)};
          },
          [&] { return close; });
    }

    /// A backward of expm1 makes exp of what it has, expm1 + 1; both add a log-prob's own slope, 1.
    /// In no library a probability is above 1.
    Answer<S> by_expm1(const S& x) const {
      const S p = exp(x), less = minimum(S(expm1(x)), S(0)), rest = -less;
      return {log(rest), p / rest, one_ + wider(p, S(less + one_)) / rest};
    }
    Answer<S> by_exp(const S& x) const {
      const S p = minimum(S(exp(x)), one_), rest = one_ - p;
      return {log1p(S(-p)), p / rest, one_ + p / rest};
    }

    static constexpr double kUnlikely = -0.5;

    const Inputs<S>& in_;
    S one_;
  };
};

}  // namespace lossgate::reference
