// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/losses/policy_objective.h"

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
///   gives loss 0. Ties: clamp passes on its closed interval (rule A4).
/// Error: an unclamped exp overflows where the clip or the mask has long decided the value, and
///   infinity times zero is NaN in the backward; k3 cancels for |x| << 1.
/// Source: Shao et al. 2024 (arXiv:2402.03300) eq. 3 and 4; GSPO: Zheng et al. 2025
///   (arXiv:2507.18071) eq. 5-7; clamps: NVIDIA-NeMo/RL `calculate_kl`, verl `core_algos.py`.
struct Grpo {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    return {
        .id = "grpo",
        .title = "PPO-clip / GRPO with a KL penalty, from log-probs",
        .formula =
            "-min(w A, clamp(w, 1 - clip_low, 1 + clip_high) A) + kl_penalty * KL, "
            "w = exp(clamp(log_prob - old_log_prob))",
        .source = "arXiv:1707.06347 eq. 7; arXiv:2402.03300 eq. 3-4; arXiv:2507.18071 eq. 5-7",
        .forms = kK3Forms,
        .options = policy_options(),
        .fields = {log_prob_field("log_prob", Role::differentiable,
                                  "of the taken token, current policy"),
                   old_log_prob_field(),
                   log_prob_field("ref_log_prob", Role::constant, "reference policy"),
                   advantage_field(), mask_field()},
        .outputs = {per_token_output()},
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
    const PolicyObjective<S> objective(in, out, true);
    const FieldReader<S> log_prob = in.field("log_prob");
    const auto write = out.gradient("log_prob");
    PolicySums<S> sums(in);
    std::vector<S> row(static_cast<std::size_t>(in.tokens()), S(0)), gradient;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (in.valid(s, t)) row[static_cast<std::size_t>(t)] = log_prob(s, t);
      }
      objective.row(s, row, sums, gradient);
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        const S& entry = gradient[static_cast<std::size_t>(t)];
        write(in.valid(s, t) ? in.gradient(entry) : entry, s, t);
      }
    }
    objective.write_loss(out, sums);
  }
};

}  // namespace lossgate::reference
