// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/kl_terms.h"
#include "reference/losses/options.h"
#include "reference/losses/token_terms.h"
#include "reference/squares.h"

namespace lossgate::reference {

/// A KL penalty from log-probs alone.
///
/// Formula: KlEstimator of x = ref_log_prob - log_prob, times w = exp(clamp(log_prob -
///   old_log_prob)) where kl_weighted, reduced over valid positions.
/// Shapes: all fields [sequences, tokens]. Units: nats.
/// Gradient: for log_prob; with kl_straight_through it is that of k2 without clamps, log_prob -
///   ref_log_prob, whatever the estimator (the "+" variants). Zero where masked.
/// Error: exp(x) overflows where the output clamp has long decided the value; k3 cancels for
///   |x| << 1; x^2 / 2 of a straight-through estimator must not be formed (inf - inf).
/// Source: J. Schulman, "Approximating KL divergence" (2020); NVIDIA-NeMo/RL `calculate_kl`;
///   verl `core_algos.py::kl_penalty`.
struct KlPenalty {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    std::vector<Option> options = kl_options();
    options.push_back(
        flag_option("kl_straight_through",
                    "the gradient is that of k2, without clamps or weight, whatever the "
                    "estimator"));
    options.push_back(log_ratio_clamp_option());
    options.push_back(max_length_option());
    OutputField per_token = per_token_output();
    per_token.range = [](const Case& c) -> std::optional<std::pair<double, double>> {
      if (c.spec.choice("kl_estimator") == "k1") return std::nullopt;
      return std::pair(0.0, std::numeric_limits<double>::infinity());
    };
    return {
        .id = "kl_penalty",
        .title = "KL penalty from log-probs: k1, k2, k3",
        .formula = "k1 = -x, k2 = x^2 / 2, k3 = exp(x) - x - 1, x = ref_log_prob - log_prob",
        .source = "J. Schulman, Approximating KL divergence (2020); NVIDIA-NeMo/RL calculate_kl",
        .forms = kK3Forms,
        .options = std::move(options),
        .fields = {log_prob_field("log_prob", Role::differentiable, "current policy"),
                   log_prob_field("ref_log_prob", Role::constant, "reference policy"),
                   old_log_prob_field(), mask_field()},
        .outputs = {std::move(per_token)},
        .reductions = kTokenReductions,
        .reach = {{"KL input", "ref_log_prob", "log_prob"},
                  {"log-ratio", "old_log_prob", "log_prob"}},
        .mask = "mask",
        .on_policy = {{"old_log_prob", "log_prob"}, {"ref_log_prob", "log_prob"}},
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto log_prob = in.field("log_prob"), ref_log_prob = in.field("ref_log_prob"),
               old_log_prob = in.field("old_log_prob");
    const ImportanceWeight<S> importance(in);
    const KlEstimator<S> kl(in);
    const bool weighted = in.spec().number("kl_weighted") != 0.0;
    const bool straight = in.spec().number("kl_straight_through") != 0.0;
    evaluate_by_token(in, out, "log_prob", [&](const S& weight, std::int64_t s, std::int64_t t) {
      const S p = log_prob(s, t), r = ref_log_prob(s, t);
      const Term<S> w = weighted ? importance(store(Stage::log_prob, p - old_log_prob(s, t)))
                                 : Term<S>{S(0), S(0)};
      const auto k = kl(p, r, weighted ? &w.value : nullptr);
      const S off = straight ? store(Stage::log_prob, S(p - r)) : S(0);
      const S value = straight ? straight_through(k.value, half_square(off)) : k.value;
      const S scale = in.upstream() * weight;
      // What comes back to either log-ratio has its format, whatever of it cancels behind that.
      const S by_kl = store(Stage::log_prob, straight   ? S(scale * slope_of_half_square(off))
                                             : weighted ? distributed(k.slope, scale, w.value)
                                                        : distributed(k.slope, scale));
      // Where each widens the log-prob by itself, each hands it back as the field has it.
      const auto apart = [](const S& part) { return store(Stage::gradient, part); };
      const S slope =
          straight || !weighted
              ? by_kl
              : scaled_sum(in.upstream(), weight, apart(by_kl),
                           apart(store(Stage::log_prob, S(through(w, scale, k.weight_slope)))),
                           S(0));
      return TokenTerm<S>{value, weight * value, slope};
    });
  }

 private:
  template <class S>
  static S half_square(const S& x) {
    return constant<S>(0.5L) * x * x;
  }
};

}  // namespace lossgate::reference
