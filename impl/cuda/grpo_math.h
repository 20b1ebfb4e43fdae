// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/kl_math.h"
#include "impl/cuda/policy_math.h"

namespace lossgate::impl {

template <class F>
struct GrpoOptions {
  ClipRange<F> clip;
  Limit<F> log_ratio;
  F kl_penalty = F(0);
  KlOptions<F> kl;
  bool sequence_level = false;
};

template <class F>
struct GrpoToken {
  F log_prob, old_log_prob, ref_log_prob, advantage;
};

/// One token's term and its derivatives: with respect to log_prob with the weight held fixed, to
/// the weight, and to the weight's logarithm (see KlTerm).
template <class F>
struct GrpoTerm {
  F value, slope, weight_slope, log_weight_slope;
};

template <class F>
LOSSGATE_HOST_DEVICE inline GrpoTerm<F> grpo_term(const GrpoToken<F>& token,
                                                  const ImportanceWeight<F>& weight,
                                                  const GrpoOptions<F>& options) {
  const Surrogate<F> policy = clipped_surrogate(weight.value, token.advantage, options.clip);
  GrpoTerm<F> term{policy.value, F(0), policy.slope, F(0)};
  if (token.advantage == F(0)) {
    // The weight is not asked for, but a NaN in what it is made of must show.
    const F operands = token.log_prob != token.log_prob ? token.log_prob : token.old_log_prob;
    if (operands != operands) term = {operands, operands, F(0), F(0)};
  }
  if (options.kl_penalty == F(0)) return term;
  const KlTerm<F> kl = kl_term(token.log_prob, token.ref_log_prob, weight, options.kl);
  return {term.value + options.kl_penalty * kl.value, term.slope + options.kl_penalty * kl.slope,
          term.weight_slope + options.kl_penalty * kl.weight_slope,
          options.kl_penalty * kl.log_weight_slope};
}

/// The gradient of `scale` times the term with respect to log_prob, at token level.
template <class F>
LOSSGATE_HOST_DEVICE inline F grpo_gradient(const GrpoTerm<F>& term,
                                            const ImportanceWeight<F>& weight, F scale) {
  const F through = scaled(term.weight_slope, weight.slope) + term.log_weight_slope;
  return scaled(scale, through) + scaled(scale, term.slope);
}

}  // namespace lossgate::impl
