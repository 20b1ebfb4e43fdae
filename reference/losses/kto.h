// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "reference/losses/options.h"
#include "reference/problem.h"
#include "reference/products.h"
#include "reference/sums.h"

namespace lossgate::reference {

/// Kahneman-Tversky optimisation, from the log-probs of whole answers, each of which somebody
/// wanted or did not.
///
/// Formula: x[s] = weight (1 - sigmoid(h)), summed over sequences, or averaged, with
///   r = log_prob - ref_log_prob and, of a desirable answer, h = beta (r - kl), weight =
///   desirable_weight; of another one, h = beta (kl - r), weight = undesirable_weight.
///   kl is where an answer is as good as none: max(0, the mean of r over answers to other prompts),
///   a constant. It is one number of the whole step, an option as num_items is: all micro-batches
///   and ranks have the same, where one that each makes of its own answers is a mean of means. At 0
///   this is APO-zero of answers without a pair (TRL's apo_zero_unpaired).
/// Shapes: all fields [sequences], one answer each. Units: log-probs in nats.
/// Gradient: for log_prob: -+ weight beta sigmoid(h) sigmoid(-h), + where undesirable.
/// Error: 1 - sigmoid(h), which trainers compute, has no digit of a term below the roundoff;
///   sigmoid(-h) has. The derivative y (1 - y) that autograd has of a sigmoid y cancels where y is
///   near 1: above for 1 - sigmoid(h), below for sigmoid(-h). A batch may have one kind of answers
///   alone. An answer that is impossible has a term, the weight or 0, and no gradient.
/// Source: Ethayarajh et al. 2024 (arXiv:2402.01306) eq. 7; D'Oosterlinck et al. 2024
///   (arXiv:2408.06266) eq. 7; TRL `KTOTrainer`; Liger Kernel `LigerFusedLinearKTOFunction`.
struct Kto {
  static LossSignature signature() {
    const auto field = [](std::string name, Role role, std::string doc) {
      Field log_prob = log_prob_field(std::move(name), role, std::move(doc));
      log_prob.axes = {Axis::sequences};
      log_prob.optional = role == Role::constant;
      return log_prob;
    };
    const auto weight = [](std::string name, std::string doc) {
      return usual_option({1.33, 1.5, 2.0},
                          real_option(std::move(name), 1.0, 0.0, 10.0, std::move(doc)));
    };
    return {
        .id = "kto",
        .title = "KTO: preference optimisation from answers that are desirable or not",
        .formula =
            "weight (1 - sigmoid(beta (r - kl))), or of (kl - r) where undesirable; "
            "r = log_prob - ref_log_prob",
        .source = "arXiv:2402.01306 eq. 7; arXiv:2408.06266 eq. 7; TRL KTOTrainer; Liger",
        .forms = {kTail, kComplement},
        .options = {real_option("beta", 0.1, 0.001, 10.0, "strength of the reference"),
                    real_option("kl", 0.0, 0.0, 100.0,
                                "estimate of the policy's divergence from the reference, of the "
                                "whole step, nats; 0: APO-zero"),
                    weight("desirable_weight", "of desirable answers"),
                    weight("undesirable_weight", "of the others")},
        .fields = {field("log_prob", Role::differentiable, "of the answer, current policy"),
                   field("ref_log_prob", Role::constant, "of the answer, reference policy"),
                   {.name = "desirable",
                    .role = Role::constant,
                    .quantity = Quantity::mask,
                    .axes = {Axis::sequences},
                    .dtypes = {Dtype::boolean},
                    .doc = "1 = the answer was wanted"}},
        .outputs = {{.name = "per_sequence",
                     .axes = {Axis::sequences},
                     .doc = "the term of each sequence before the reduction",
                     .range = range}},
        .reductions = {Reduction::sequence_mean, Reduction::sum},
        .reach = {{"log-ratio", "ref_log_prob", "log_prob"}},
        .scale = "beta",
    };
  }

  static std::optional<std::pair<double, double>> range(const Case& c) {
    return std::pair(
        0.0, std::max(c.spec.number("desirable_weight"), c.spec.number("undesirable_weight")));
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto log_prob = in.field("log_prob"), ref_log_prob = in.field("ref_log_prob"),
               desirable = in.field("desirable");
    const auto per_sequence = out.writer("per_sequence"), gradient = out.gradient("log_prob");
    const Terms<S> terms(in);
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const S weight = in.token_weight(s), back = in.upstream() * weight;
      const Term<S> term = terms(log_prob(s), ref_log_prob(s), desirable.integer(s) != 0, weight);
      // It may be stored before its own weight comes, and after that.
      const S value = stored_within(Stage::per_token, term.value, term.lost),
              weighted = stored_within(Stage::per_token, S(weight * term.value), term.lost),
              slope = stored_within(Stage::per_token, term.gradient, S(back * term.weight));
      per_sequence(store(Stage::per_token, value), s);
      loss.add(stored_within(Stage::per_token, weighted, term.value));
      const S by_gain = stored_within(Stage::per_token, slope, back);
      gradient(in.gradient(store(Stage::log_prob, by_gain)), s);  // all goes through log-ratios
    }
    out.loss(loss);
  }

 private:
  /// Of what a term is made of, but for its weight.
  static constexpr const char *kTail = "sigmoid(-h)", *kComplement = "1 - sigmoid(h)";

  template <class S>
  struct Term {
    S weight, lost;  ///< whose product is the value
    S value;
    S gradient;  ///< of the objective, by r
  };

  /// The terms of answers.
  template <class S>
  class Terms {
   public:
    explicit Terms(const Inputs<S>& in)
        : in_(in),
          upstream_(in.upstream()),
          beta_(in.option("beta")),
          kl_(in.option("kl")),
          desirable_(in.option("desirable_weight")),
          undesirable_(in.option("undesirable_weight")),
          one_(selected<S>(1.0)) {}

    Term<S> operator()(const S& p, const S& ref, bool desirable, const S& weight) const {
      const S gain = scaled_gain(p, ref), h = desirable ? gain : S(-gain);
      const S own = desirable ? desirable_ : undesirable_;
      const S kept = sigmoid(h), lost = sigmoid(S(-h));
      const auto of = [&](const S& x, const S& gradient) {
        return Term<S>{own, x, S(own * x), gradient};
      };
      // As autograd has the slope of a sigmoid y, upwards.
      const auto slope = [&](const S& y, const S& other) {
        const S up = product(upstream_, weight, own, beta_, y, other);
        return desirable ? S(-up) : up;
      };
      const auto by_autograd = [&](const S& y) {
        return wider(slope(kept, lost), slope(y, one_ - y));
      };
      if (in_.form(kTail)) return of(lost, by_autograd(lost));
      if (in_.form(kComplement)) return of(one_ - kept, by_autograd(kept));
      return of(wider(lost, S(one_ - kept)), wider(by_autograd(lost), by_autograd(kept)));
    }

   private:
    /// beta (r - kl), or beta r - beta kl, which no form tells apart. Where none is declared kl may
    /// meet either log-prob first, scaled or not; where both scaled log-probs overflow, nothing is
    /// left of their difference, whatever weighs it.
    S scaled_gain(const S& p, const S& ref) const {
      const S r = store(Stage::log_prob, S(p - ref)), off = beta_ * kl_,
              last = wider(S(beta_ * (r - kl_)), S(beta_ * r - off));
      if (!in_.undeclared()) return last;
      const S each = sum_in_any_order(std::array{p, S(-ref), S(-kl_)}), scaled = beta_ * p,
              scaled_ref = beta_ * ref,
              each_scaled = sum_in_any_order(std::array{scaled, S(-scaled_ref), S(-off)}),
              apart = difference_of_sums(scaled, scaled_ref) - off;
      return wider(wider(last, S(beta_ * each)), wider(each_scaled, apart));
    }

    const Inputs<S>& in_;
    S upstream_, beta_, kl_, desirable_, undesirable_, one_;
  };
};

}  // namespace lossgate::reference
