// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "reference/problem.h"

namespace lossgate::reference {

/// What one valid position gives: its term, and the gradient of the objective by its leaf.
template <class S>
struct TokenTerm {
  S value;
  S weighted;  ///< as it counts in the loss
  S gradient;
};

/// REINFORCE: -c A log_prob, whatever the weight c is, which no gradient flows through.
template <class S>
TokenTerm<S> reinforced(const S& log_prob, const S& c, const S& advantage, const S& upstream,
                        const S& weight) {
  return {-scaled_by(log_prob, c, advantage), -scaled_by(log_prob, weight, c, advantage),
          -product(upstream, weight, c, advantage)};
}

/// Of a loss whose term at a position depends on that position alone: writes terms and gradients of
/// the field `leaf`, 0 where masked. `term_at(weight, s, t)` is asked at valid positions; `weight`
/// is the factor of the term in the loss. `add(term)` adds it up.
template <class S, class TermAt, class Add>
void write_by_token(const Inputs<S>& in, const Outputs<S>& out, std::string_view leaf,
                    TermAt&& term_at, Add&& add) {
  const auto per_token = out.writer("per_token"), gradient = out.gradient(leaf);
  for (std::int64_t s = 0; s < in.sequences(); ++s) {
    const S weight = in.row_tokens(s) > 0 ? in.token_weight(s) : S(0);
    const S scale = in.upstream() * weight;
    for (std::int64_t t = 0; t < in.tokens(); ++t) {
      if (!in.valid(s, t)) {
        per_token(S(0), s, t);
        gradient(S(0), s, t);
        continue;
      }
      const auto term = term_at(weight, s, t);
      per_token(store(Stage::per_token, term.value), s, t);
      add(term);
      gradient(in.gradient(stored_within(Stage::per_token, term.gradient, scale)), s, t);
    }
  }
}

/// A term as it is added up, which is stored before it is weighted.
template <class S>
S weighted(const TokenTerm<S>& term) {
  return stored_within(Stage::per_token, term.weighted, term.value);
}

/// The same with one sum of the terms.
template <class S, class TermAt>
void evaluate_by_token(const Inputs<S>& in, const Outputs<S>& out, std::string_view leaf,
                       TermAt&& term_at) {
  Sum<S> loss = in.batch_sum();
  write_by_token(in, out, leaf, term_at,
                 [&](const TokenTerm<S>& term) { loss.add(weighted(term)); });
  out.loss(loss);
}

}  // namespace lossgate::reference
