// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "reference/rows.h"

namespace lossgate::reference {

/// What one valid position gives: its term, and the gradient of the objective by its row of logits.
template <class S>
struct RowTerm {
  S value;
  S weighted;  ///< as it counts in the loss
  Row<S> gradient;
};

/// A loss whose term at a position depends on that position's row over the vocabulary alone: writes
/// terms and gradients of the field `leaf`, 0 where masked, and adds the terms up.
/// `term_at(weight, s, t, wanted)` is asked at valid positions; `weight` is the factor of the term
/// in the loss, `wanted` whether anyone asks for the gradient, which may else be left empty.
template <class S, class TermAt>
void evaluate_by_row(const Inputs<S>& in, const Outputs<S>& out, std::string_view leaf,
                     TermAt&& term_at) {
  const auto per_token = out.writer("per_token"), gradient = out.gradient(leaf);
  const std::int64_t vocab = in.extent(Axis::vocab);
  Sum<S> loss = in.batch_sum();
  for (std::int64_t s = 0; s < in.sequences(); ++s) {
    const S weight = in.row_tokens(s) > 0 ? in.token_weight(s) : S(0);
    for (std::int64_t t = 0; t < in.tokens(); ++t) {
      if (!in.valid(s, t)) {
        per_token(S(0), s, t);
        for (std::int64_t v = 0; v < vocab; ++v) gradient(S(0), s, t, v);
        continue;
      }
      const RowTerm<S> term = term_at(weight, s, t, gradient.wanted());
      per_token(store(Stage::per_token, term.value), s, t);
      loss.add(term.weighted);
      if (!gradient.wanted()) continue;
      for (std::int64_t v = 0; v < vocab; ++v) {
        gradient(in.gradient(term.gradient[v]), s, t, v);
      }
    }
  }
  out.loss(loss);
}

}  // namespace lossgate::reference
