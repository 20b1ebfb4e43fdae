// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/logistic_loss.h"
#include "reference/losses/options.h"
#include "reference/losses/preference.h"
#include "reference/monotonic.h"
#include "reference/problem.h"
#include "reference/products.h"
#include "reference/sums.h"
#include "reference/two_classes.h"

namespace lossgate::reference {

/// Direct preference optimisation, from the log-probs of whole answers.
///
/// Formula: D[s] = (c - r) - (ref_c - ref_r), for a chosen answer c and a rejected one r;
///   loss_type sigmoid: -(1 - e) log sigmoid(h) - e log sigmoid(-h), e = label_smoothing and
///                      h = beta D - margin, or beta (D - margin / beta);
///   loss_type hinge:   max(0, 1 - beta D);
///   loss_type ipo:     (D - 1 / (2 beta))^2; summed over pairs, or averaged.
///   Without a reference, whose log-probs are then 0, this is the loss of a reward model (beta = 1,
///   c and r what it gives both answers), the main term of CPO and, of log-probs that are means
///   over tokens, SimPO, whose gamma is the margin.
/// Shapes: all fields [sequences], one pair each. Units: log-probs in nats.
/// Gradient: for both log-probs, the rejected one's is minus the chosen one's. At its corner the
///   hinge passes nothing, as relu does (rule A4).
/// Error: log(sigmoid(x)) underflows at -104 in f32, log(1 + exp(-x)) overflows at -88.7. D is as
///   exact as what it is the difference of: log-ratios of each answer, or those of each policy;
///   beta D may be that of two rewards, beta (c - ref_c) and beta (r - ref_r), or a sum of all four
///   times beta, each of which may overflow. A margin rounds with whatever it meets first.
///   The derivative sigmoid(h) - (1 - e), as binary_cross_entropy_with_logits has it, cancels; a
///   log_softmax of h and 0 rounds at 1, one of two rewards, the second without a margin, where it
///   is a log-prob less logsumexp, at the size of those.
/// Source: Rafailov et al. 2023 (arXiv:2305.18290) eq. 7; label smoothing as in conservative DPO;
///   hinge: Liu et al. 2023 (arXiv:2309.06657) eq. 14; IPO: Azar et al. 2023 (arXiv:2310.12036)
///   eq. 17; margin: Meng et al. 2024 (arXiv:2405.14734, SimPO) eq. 6, Touvron et al. 2023
///   (arXiv:2307.09288, reward models) eq. 2; TRL, torchtune, OpenRLHF, AReaL, Liger Kernel.
struct Dpo {
  static LossSignature signature() {
    const auto field = [](std::string name, Role role, std::string doc) {
      Field log_prob = log_prob_field(std::move(name), role, std::move(doc));
      log_prob.axes = {Axis::sequences};
      log_prob.infinity = Infinity::surfaces;
      log_prob.optional = role == Role::constant;
      return log_prob;
    };
    OutputField per_pair = non_negative_per_token_output();
    per_pair.name = "per_pair";
    per_pair.axes = {Axis::sequences};
    per_pair.doc = "the term of each pair before the reduction";
    return {
        .id = "dpo",
        .title = "DPO: preference optimisation from the log-probs of answers",
        .formula = "-log sigmoid(beta ((c - r) - (ref_c - ref_r)) - margin), hinge and IPO",
        .source =
            "arXiv:2305.18290 eq. 7; arXiv:2309.06657 eq. 14; arXiv:2310.12036 eq. 17; "
            "arXiv:2405.14734 eq. 6",
        .forms = joined_forms({kByPolicy, "(c - ref_c) - (r - ref_r)"}, {kApart, kTogether}),
        .options = {choice_option("loss_type", {"sigmoid", "hinge", "ipo"},
                                  "what D is made of; sigmoid: -log sigmoid(beta D - margin), "
                                  "hinge: max(0, 1 - beta D), ipo: (D - 1 / (2 beta))^2"),
                    real_option("beta", 0.1, 0.001, 10.0, "strength of the reference"),
                    real_option("label_smoothing", 0.0, 0.0, 0.5,
                                "share of pairs that are the other way round; of sigmoid alone"),
                    // TRL's and Liger's, those of SimPO's models.
                    usual_option({0.5, 1.0, 0.3, 1.6, 1.375},
                                 real_option("margin", 0.0, 0.0, 10.0,
                                             "what beta D has to exceed; of sigmoid alone"))},
        .fields = {field("chosen_log_prob", Role::differentiable,
                         "of the chosen answer, current policy"),
                   field("rejected_log_prob", Role::differentiable,
                         "of the rejected answer, current policy"),
                   field("ref_chosen_log_prob", Role::constant,
                         "of the chosen answer, reference policy"),
                   field("ref_rejected_log_prob", Role::constant,
                         "of the rejected answer, reference policy")},
        .outputs = {per_pair},
        .reductions = {Reduction::sequence_mean, Reduction::sum},
        .reach = {{"log-ratio", "ref_chosen_log_prob", "chosen_log_prob"},
                  {"log-ratio", "ref_rejected_log_prob", "rejected_log_prob"}},
        .scale = "beta",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto chosen = in.field("chosen_log_prob"), rejected = in.field("rejected_log_prob"),
               ref_chosen = in.field("ref_chosen_log_prob"),
               ref_rejected = in.field("ref_rejected_log_prob");
    const auto per_pair = out.writer("per_pair"), by_chosen = out.gradient("chosen_log_prob"),
               by_rejected = out.gradient("rejected_log_prob");
    const Pairs<S> pairs(in);
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const S weight = in.token_weight(s);
      const Answers<S> of = {chosen(s), rejected(s), ref_chosen(s), ref_rejected(s)};
      const Pair<S> pair = pairs(of, weight);
      per_pair(store(Stage::per_token, pair.value), s);
      loss.add(stored_within(Stage::per_token, weight * pair.value, pair.value));
      const S by_difference =
          stored_within(Stage::per_token, pair.gradient, S(in.upstream() * weight));
      const S slope = store(Stage::log_prob, by_difference);  // all of it goes through log-ratios
      by_chosen(in.gradient(slope), s);
      by_rejected(in.gradient(-slope), s);
    }
    out.loss(loss);
  }

 private:
  /// Of D; and of the derivative of sigmoid's term.
  static constexpr const char* kByPolicy = "(c - r) - (ref_c - ref_r)";
  static constexpr const char* kApart = "e sigmoid(h) - (1 - e) sigmoid(-h)";
  static constexpr const char* kTogether = "sigmoid(h) - (1 - e)";

  template <class S>
  struct Pair {
    S value;
    S gradient;  ///< of the objective, by D
  };

  /// The terms of pairs.
  template <class S>
  class Pairs {
   public:
    explicit Pairs(const Inputs<S>& in)
        : in_(in),
          preference_(in, in.form(kByPolicy)),
          kind_(in.spec().choice("loss_type")),
          upstream_(in.upstream()),
          beta_(in.option("beta")),
          kept_(constant<S>(1.0L - static_cast<Real>(in.spec().number("label_smoothing")))),
          turned_(in.option("label_smoothing")),
          one_(selected<S>(1.0)),
          two_(selected<S>(2.0)) {}

    Pair<S> operator()(const Answers<S>& of, const S& weight) const {
      if (kind_ == "ipo") return ipo(preference_.off_target(of), weight);
      if (kind_ == "hinge") return hinge(preference_.short_of_one(of), weight);
      return sigmoidal(of, preference_.less_margin(of), weight);
    }

   private:
    Pair<S> sigmoidal(const Answers<S>& of, const S& h, const S& weight) const {
      const auto apart = [&] {
        const S down = product(upstream_, weight, beta_, kept_, logistic(-h)),
                up = product(upstream_, weight, beta_, turned_, logistic(h));
        return S(scaled_sum(product(upstream_, beta_), weight, up, -down, S(0)));
      };
      const auto together = [&] {
        return S(product(upstream_, weight, beta_, sigmoid(h) - kept_));
      };
      const S value = multiplied(kept_, logistic_loss(-h)) + multiplied(turned_, logistic_loss(h));
      if (in_.form(kApart)) return {value, apart()};
      if (in_.form(kTogether)) return {wider(value, by_cross_entropy(h)), together()};
      // As a softmax of both rewards has it, or of h and 0.
      const auto [a, b] = preference_.rewards(of);
      const S of_shares =
          product(upstream_, weight, beta_, by_normaliser(S(sigmoid(h) - kept_), a, b, h));
      return {wider(wider(value, by_cross_entropy(h)), by_normaliser(of_two_classes(h), a, b, h)),
              by_softmax_with_zero(wider(wider(apart(), together()), of_shares), h)};
    }

    /// binary_cross_entropy_with_logits of h and 1 - e, of which it takes e as what is left to 1.
    S by_cross_entropy(const S& h) const {
      if (in_.spec().number("label_smoothing") == 0.0) return softplus(-h);
      return multiplied(one_ - kept_, h) + softplus(-h);
    }

    /// log_softmax of h and 0.
    S of_two_classes(const S& h) const {
      const S sum = multiplied(kept_, logistic_loss_of_two_classes(S(-h))) +
                    multiplied(turned_, logistic_loss_of_two_classes(h));
      return by_softmax_with_zero(sum, h);
    }

    Pair<S> hinge(const S& rest, const S& weight) const {
      const S flows = switched<S>(compare(rest, S(0)), 0.0, 0.0, 1.0);
      return {maximum(rest, S(0)), -product(upstream_, weight, beta_, flows)};
    }

    Pair<S> ipo(const S& off, const S& weight) const {
      return {off * off, product(upstream_, weight, two_, off)};
    }

    const Inputs<S>& in_;
    Preference<S> preference_;
    std::string kind_;
    S upstream_, beta_, kept_, turned_, one_, two_;
  };
};

}  // namespace lossgate::reference
