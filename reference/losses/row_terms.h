// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "reference/rows.h"

namespace lossgate::reference {

/// What one valid position gives: its term, and the gradient of the objective by its row of logits.
template <class S>
struct RowTerm : RowFunction<S> {
  S weighted;  ///< the term as it counts in the loss
};

template <class S>
RowTerm<S> weighted_by(const S& weight, RowFunction<S> term) {
  const S weighted = weight * term.value;
  return {std::move(term), weighted};
}

/// A loss whose term at a position depends on one row over the vocabulary: writes terms, 0 where
/// masked, and adds them up. `term_at(weight, s, t, wanted)` is asked at valid positions; `weight`
/// is the factor of the term in the loss, and in its gradient, `wanted` whether anyone asks for the
/// gradient, which may else be left empty. `gradients` take it back to the fields.
template <class S, class Gradients, class TermAt>
void evaluate_terms(const Inputs<S>& in, const Outputs<S>& out, Gradients& gradients,
                    TermAt&& term_at) {
  const auto per_token = out.writer("per_token");
  const bool wanted = gradients.wanted();
  Sum<S> loss = in.batch_sum();
  for (std::int64_t s = 0; s < in.sequences(); ++s) {
    const S weight = in.row_tokens(s) > 0 ? in.token_weight(s) : S(0);
    const S scale = in.upstream() * weight;
    for (std::int64_t t = 0; t < in.tokens(); ++t) {
      if (!in.valid(s, t)) {
        per_token(S(0), s, t);
        gradients.masked(s, t);
        continue;
      }
      RowTerm<S> term = term_at(weight, s, t, wanted);
      per_token(store(Stage::per_token, term.value), s, t);
      loss.add(stored_within(Stage::per_token, term.weighted, term.value));
      if (!wanted) continue;
      for (S& g : term.gradient) g = stored_within(Stage::per_token, g, scale);
      gradients.back(term.gradient, s, t);
    }
  }
  out.loss(loss);
}

/// The gradient by a field that holds the logits themselves, 0 where masked.
template <class S>
class LogitsGradient {
 public:
  LogitsGradient(const Inputs<S>& in, const Outputs<S>& out, std::string_view leaf)
      : in_(in), write_(out.gradient(leaf)) {}

  bool wanted() const { return write_.wanted(); }

  void masked(std::int64_t s, std::int64_t t) const {
    for (std::int64_t v = 0; v < in_.extent(Axis::vocab); ++v) write_(S(0), s, t, v);
  }

  void back(const Row<S>& by_logit, std::int64_t s, std::int64_t t) const {
    for (std::int64_t v = 0; v < by_logit.size(); ++v) write_(in_.gradient(by_logit[v]), s, t, v);
  }

 private:
  const Inputs<S>& in_;
  typename Outputs<S>::Writer write_;
};

/// The terms of the rows of the field `leaf`.
template <class S, class TermAt>
void evaluate_by_row(const Inputs<S>& in, const Outputs<S>& out, std::string_view leaf,
                     TermAt&& term_at) {
  LogitsGradient<S> gradient(in, out, leaf);
  evaluate_terms(in, out, gradient, term_at);
}

}  // namespace lossgate::reference
