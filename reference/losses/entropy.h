// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "reference/rows.h"

namespace lossgate::reference {

/// Another way to the entropy than -sum p log p.
inline constexpr const char* kEntropyDifferenceForm = "logsumexp(x) - sum p x";

/// The entropy H = -sum p log p of p = softmax(x), whose gradient by each x is p (-log p - H), made
/// what it counts by `scaled`, which multiplies each term of a difference. From log-probs it is
/// -sum p l, whose derivative, term by term, is -(p l + p); of that, p sums away. Their normaliser
/// may be `joined` of parts of the row.
template <class S, class Scaled>
RowFunction<S> entropy_of_log_probs(const Row<S>& l, bool joined, const Scaled& scaled) {
  Sum<S> sum(l.size());
  Row<S> g(l.size());
  for (Eigen::Index v = 0; v < l.size(); ++v) {
    const S p = exp(l[v]), term = weighed(p, l[v]);
    sum.add(term);
    const S slope = -(term + p);
    g[v] = scaled(Cancelling<S>{slope, l[v]});
  }
  return {-sum.value(), log_softmax_gradient(l, std::move(g), joined)};
}

/// The same from logits, with a normaliser that may be `joined`, too: logsumexp(x) - sum p x. Of
/// the derivative p (sum p x - x) + p - p the last two are one number, rounded twice; a backward
/// meets each x before it meets p.
template <class S, class Scaled>
RowFunction<S> entropy_as_difference(const Row<S>& x, const Row<S>& l, const LogSumExp<S>& whole,
                                     bool joined, const Scaled& scaled) {
  Sum<S> sum(x.size());
  Row<S> gradient(x.size());
  for (Eigen::Index v = 0; v < x.size(); ++v) sum.add(weighed(exp(l[v]), x[v]));
  const S mean = sum.value();
  const S back = scaled(Cancelling<S>{constant<S>(1.0L), S(0)});  // to the normaliser
  for (Eigen::Index v = 0; v < x.size(); ++v) {
    const S p = probability(l[v], joined);
    const S slope = scaled(Cancelling<S>{weighed(p, mean - x[v]) + (p - p), x[v]});
    gradient[v] = holding_stored(Stage::log_prob, slope, S(p * back), back);
  }
  return {stored(whole) - mean, std::move(gradient)};
}

}  // namespace lossgate::reference
