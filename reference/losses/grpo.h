// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/kl_terms.h"
#include "reference/losses/options.h"
#include "reference/losses/policy_terms.h"

namespace lossgate::reference {

/// PPO-clip / GRPO with a KL penalty, from log-probs.
///
/// Formula: x[s,t] = L(w[s,t]) + kl_penalty * KL[s,t], reduced over valid positions;
///   d[s,t] = log_prob - old_log_prob;
///   token level:     w[s,t] = exp(clamp(d[s,t], +-log_ratio_clamp));
///   sequence level:  w[s,t] = exp(clamp(sum_u d[s,u] / n_s, +-log_ratio_clamp)) (GSPO);
///   L: clipped surrogate (ClippedSurrogate); KL: KlEstimator.
/// Shapes: all fields [sequences, tokens]. Units: log-probs in nats, advantages dimensionless.
/// Gradient: for log_prob. Token level: dL/dw * w * [d inside its clamp] + kl_penalty * dKL; at
///   sequence level the first term is averaged over the sequence. Zero where masked; an empty mask
///   gives loss 0. Ties: clamp passes on its closed interval (numerics A4).
/// Error: an unclamped exp overflows where the clip or the mask has long decided the value, and
///   infinity times zero is NaN in the backward; k3 cancels for |x| << 1.
/// Source: Shao et al. 2024 (arXiv:2402.03300) eq. 3 and 4; GSPO: Zheng et al. 2025
///   (arXiv:2507.18071) eq. 5-7; clamps: NVIDIA-NeMo/RL `calculate_kl`, verl `core_algos.py`.
struct Grpo {
  static LossSignature signature() {
    const auto log_prob = [](std::string name, Role role, std::string doc) {
      return Field{.name = std::move(name),
                   .role = role,
                   .quantity = Quantity::log_prob,
                   .axes = {Axis::sequences, Axis::tokens},
                   .infinity = Infinity::legal,
                   .doc = std::move(doc)};
    };
    return {
        .id = "grpo",
        .title = "PPO-clip / GRPO with a KL penalty, from log-probs",
        .formula =
            "-min(w A, clamp(w, 1 - clip_low, 1 + clip_high) A) + kl_penalty * KL, "
            "w = exp(clamp(log_prob - old_log_prob))",
        .source = "arXiv:1707.06347 eq. 7; arXiv:2402.03300 eq. 3-4; arXiv:2507.18071 eq. 5-7",
        .forms = kK3Forms,
        .options = policy_options(),
        .fields = {log_prob("log_prob", Role::differentiable, "of the taken token, current policy"),
                   log_prob("old_log_prob", Role::constant, "behaviour policy"),
                   log_prob("ref_log_prob", Role::constant, "reference policy"),
                   {.name = "advantage",
                    .role = Role::constant,
                    .quantity = Quantity::advantage,
                    .axes = {Axis::sequences, Axis::tokens},
                    .infinity = Infinity::surfaces,
                    .doc = "of the taken token"},
                   mask_field()},
        .outputs = {{.name = "per_token",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "x, before the reduction; 0 where masked"}},
        .reductions = kTokenReductions,
        .reach = {{"log-ratio", "old_log_prob", "log_prob"},
                  {"KL input", "ref_log_prob", "log_prob"}},
        .mask = "mask",
        .advantage = "advantage",
        .coefficient = "kl_penalty",
        .on_policy = {{"old_log_prob", "log_prob"}, {"ref_log_prob", "log_prob"}},
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    Formula<S> formula(in, out);
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) formula.row(s, loss);
    out.loss(loss);
  }

 private:
  template <class S>
  struct Formula {
    Formula(const Inputs<S>& in_, const Outputs<S>& out)
        : in(in_),
          log_prob(in.field("log_prob")),
          old_log_prob(in.field("old_log_prob")),
          ref_log_prob(in.field("ref_log_prob")),
          advantage(in.field("advantage")),
          importance(in),
          surrogate(in),
          kl(in),
          kl_penalty(in.option("kl_penalty")),
          kl_weighted(in.spec().number("kl_weighted") != 0.0),
          sequence_level(in.spec().choice("level") == "sequence"),
          per_token(out.writer("per_token")),
          gradient(out.gradient("log_prob")) {}

    void row(std::int64_t s, Sum<S>& loss) const {
      const bool live = in.row_tokens(s) > 0;
      const S weight = live ? in.token_weight(s) : S(0);
      const S scale = in.upstream() * weight;
      const Term<S> shared = live && sequence_level ? sequence_weight(s) : Term<S>{S(0), S(0)};
      Sum<S> through_shared = in.row_sum();
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          per_token(S(0), s, t);
          gradient(S(0), s, t);
          continue;
        }
        const Term<S> w = sequence_level ? shared : importance(log_ratio(s, t));
        const Token token = at(s, t, w.value);
        per_token(store(Stage::per_token, token.value), s, t);
        loss.add(weight * token.value);
        if (sequence_level) {
          through_shared.add(scale * token.weight_slope);
        } else {
          const S through = scale * (token.weight_slope * w.slope);
          gradient(store(Stage::gradient, through + scale * token.slope), s, t);
        }
      }
      if (sequence_level && live) sequence_gradient(s, scale, shared, through_shared.value());
    }

   private:
    /// The term of one position and its derivatives with respect to log_prob (the weight held
    /// fixed) and the weight.
    struct Token {
      S value, slope, weight_slope;
    };

    S log_ratio(std::int64_t s, std::int64_t t) const {
      return store(Stage::log_prob, log_prob(s, t) - old_log_prob(s, t));
    }

    Token at(std::int64_t s, std::int64_t t, const S& weight) const {
      const Term<S> policy = surrogate(weight, advantage(s, t));
      if (value_of(kl_penalty) == 0) return {policy.value, S(0), policy.slope};
      const auto k = kl(log_prob(s, t), ref_log_prob(s, t), kl_weighted ? &weight : nullptr);
      return {policy.value + kl_penalty * k.value, kl_penalty * k.slope,
              policy.slope + kl_penalty * k.weight_slope};
    }

    Term<S> sequence_weight(std::int64_t s) const {
      Sum<S> sum = in.row_sum();
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (in.valid(s, t)) sum.add(log_ratio(s, t));
      }
      const S count = constant<S>(static_cast<Real>(in.row_tokens(s)));
      const Term<S> w = importance(sum.value() / count);
      return {w.value, w.slope / count};
    }

    void sequence_gradient(std::int64_t s, const S& scale, const Term<S>& shared,
                           const S& through_shared) const {
      const S common = through_shared * shared.slope;
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) continue;
        const S own = scale * at(s, t, shared.value).slope;
        gradient(store(Stage::gradient, common + own), s, t);
      }
    }

    const Inputs<S>& in;
    FieldReader<S> log_prob, old_log_prob, ref_log_prob, advantage;
    ImportanceWeight<S> importance;
    ClippedSurrogate<S> surrogate;
    KlEstimator<S> kl;
    S kl_penalty;
    bool kl_weighted, sequence_level;
    typename Outputs<S>::Writer per_token, gradient;
  };
};

}  // namespace lossgate::reference
