// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/monotonic.h"
#include "reference/problem.h"
#include "reference/temperature.h"

namespace Eigen {

template <>
struct NumTraits<lossgate::reference::Tracked> : GenericNumTraits<long double> {
  using Real = lossgate::reference::Tracked;
  using NonInteger = lossgate::reference::Tracked;
  using Nested = lossgate::reference::Tracked;
  using Literal = lossgate::reference::Tracked;
};

}  // namespace Eigen

namespace lossgate::reference {

/// One row of a vocabulary or hidden axis; the only array of such an axis that exists (rule A7).
template <class S>
using Row = Eigen::Array<S, Eigen::Dynamic, 1>;

template <class S>
Row<S> zero_row(std::int64_t size) {
  return Row<S>::Constant(size, S(0));
}

/// A number that an implementation both subtracts and, elsewhere, takes as subtracted: its own
/// error cancels (the maximum in a softmax).
template <class S>
S as_shift(const S& a) {
  return a;
}

inline Tracked as_shift(const Tracked& a) {
  const double magnitude = tracking::magnitude(a.v);
  // Only a stored infinity is exact; one that a Real beyond double's range becomes is not.
  if (magnitude == tracking::kInfinity) return a;
  return {a.v, 0.0, tracking::most(a), 0.0};
}

/// The shift of a row, from which infinity is taken where in the compute format some entry
/// overflows upwards, or all downwards: infinity less infinity (rule B2).
template <class S>
S shift_of(const Row<S>& /*x*/, const S& largest) {
  return as_shift(largest);
}

inline Tracked shift_of(const Row<Tracked>& x, const Tracked& largest) {
  Tracked shift = as_shift(largest);
  const bool meet = may_spill(largest, false) ||
                    std::ranges::any_of(x, [](const Tracked& a) { return may_spill(a, true); });
  if (meet && !tracking::is_stored_infinity(shift)) shift.peak = tracking::kInfinity;
  return shift;
}

/// Charges the gradient by each of x with what comes into the largest where the shift is not
/// detached: a sum over all entries that is 0 but for their errors.
template <class S>
void charge_shift(const Row<S>& /*x*/, Row<S>& /*gradient*/) {}

inline void charge_shift(const Row<Tracked>& x, Row<Tracked>& gradient) {
  Sum<Tracked> sum(gradient.size());
  Real largest = -INFINITY;
  for (Eigen::Index v = 0; v < gradient.size(); ++v) {
    sum.add(gradient[v]);
    largest = std::max(largest, x[v].v - tracking::whole_reach(x[v]));
  }
  Tracked total = sum.value();
  if (!std::isfinite(total.v)) total.peak = tracking::kInfinity;
  for (Eigen::Index v = 0; v < gradient.size(); ++v) {
    if (!(x[v].v + tracking::whole_reach(x[v]) >= largest)) continue;
    Tracked& g = gradient[v];
    g = {g.v, g.err + total.err, std::max(g.peak, total.peak), g.half + total.half};
  }
}

/// Reads a row of logits, divided by the temperature.
template <class S>
Row<S> read_logits(const FieldReader<S>& logits, std::int64_t s, std::int64_t t, std::int64_t vocab,
                   const S& temperature) {
  Row<S> row(vocab);
  for (std::int64_t v = 0; v < vocab; ++v) {
    row[v] = over_temperature(logits(s, t, v), temperature);
  }
  return row;
}

/// Names of the two ways to take a logarithm of a softmax.
inline constexpr const char* kShiftedForm = "(x - max) - log S";
inline constexpr const char* kLogSumExpForm = "x - logsumexp(x)";

/// log sum exp(x) = shift + log_sum, with shift = max x and log_sum = log sum exp(x - max).
template <class S>
struct LogSumExp {
  S shift, log_sum;
  Eigen::Index size = 0;  ///< how many numbers it is of
};

/// The whole as one number. Tiles that are joined (an online sum) may each leave one, which rounds
/// at its own size at every join.
template <class S>
S joined(const LogSumExp<S>& whole) {
  return whole.shift + whole.log_sum;
}

inline Tracked joined(const LogSumExp<Tracked>& whole) {
  Tracked sum = whole.shift + whole.log_sum;
  const SumRule& rule = tracking::current->sum;
  if (rule.order != SumOrder::online || tracking::is_stored_infinity(sum)) return sum;
  const double joins = std::ceil(static_cast<double>(whole.size) / rule.width) - 1.0;
  const double size = tracking::magnitude(whole.shift.v) + tracking::magnitude(whole.log_sum.v);
  sum.err += joins * tracking::roundoff(size);
  return sum;
}

/// log sum exp(x), step by step. The largest of them adds 1.
template <class S>
LogSumExp<S> log_of_sum(const Row<S>& x) {
  S largest = x[0];
  for (Eigen::Index v = 1; v < x.size(); ++v) largest = maximum(largest, x[v]);
  const S shift = shift_of(x, largest);
  Sum<S> sum(x.size());
  for (Eigen::Index v = 0; v < x.size(); ++v) sum.add(exp(x[v] - shift));
  return {shift, log_from(sum.value(), 1.0), x.size()};
}

/// It grows with each of x, by no more than that, and no shifted exp overflows: where the steps do
/// not say so, its ends do.
template <class S>
LogSumExp<S> log_sum_exp(const Row<S>& x) {
  return log_of_sum(x);
}

inline LogSumExp<Tracked> log_sum_exp(const Row<Tracked>& x) {
  using namespace tracking;
  LogSumExp<Tracked> whole = log_of_sum(x);
  const bool fits = whole.log_sum.err < kInfinity && whole.log_sum.peak <= largest;
  if (fits || is_nan(whole.log_sum)) return whole;
  const auto end = [&](double sign, const auto& reach) {
    Row<Real> moved(x.size());
    for (Eigen::Index v = 0; v < x.size(); ++v) moved[v] = x[v].v + sign * reach(x[v]);
    const LogSumExp<Real> there = log_of_sum(moved);
    return (there.shift - whole.shift.v) + there.log_sum;
  };
  const auto ends = [&](const auto& reach) { return Ends{end(-1.0, reach), end(1.0, reach)}; };
  const Row<Tracked> exact = x.unaryExpr(&without_error);
  whole.log_sum = within_ends(log_of_sum(exact).log_sum, ends(whole_reach), ends(undecided_reach));
  return whole;
}

/// The whole as one number, at the stage of log-probs.
template <class S>
S stored(const LogSumExp<S>& whole) {
  return store(Stage::log_prob, joined(whole));
}

/// The ways that the arithmetic leaves open.
enum class SoftmaxForm { shifted, by_logsumexp, either };

template <class S>
SoftmaxForm softmax_form(const Inputs<S>& in) {
  if (in.form(kShiftedForm)) return SoftmaxForm::shifted;
  return in.form(kLogSumExpForm) ? SoftmaxForm::by_logsumexp : SoftmaxForm::either;
}

/// log_softmax of a row. Either way may be the wider: the first rounds x - max, and the second
/// logsumexp(x), which is 0 near max = 0.
template <class S>
Row<S> log_softmax(const Row<S>& x, const LogSumExp<S>& whole, SoftmaxForm form) {
  const S log_sum_exp = joined(whole);
  Row<S> result(x.size());
  for (Eigen::Index v = 0; v < x.size(); ++v) {
    const auto shifted = [&] { return (x[v] - whole.shift) - whole.log_sum; };
    const auto plain = [&] { return x[v] - log_sum_exp; };
    result[v] =
        store(Stage::log_prob, form == SoftmaxForm::shifted        ? shifted()
                               : form == SoftmaxForm::by_logsumexp ? plain()
                                                                   : wider(shifted(), plain()));
  }
  return result;
}

template <class S>
Row<S> log_softmax(const Row<S>& x, SoftmaxForm form) {
  return log_softmax(x, log_sum_exp(x), form);
}

/// A number made of a row, and its gradient by each entry, times what comes from above.
template <class S>
struct RowFunction {
  S value;
  Row<S> gradient;
};

/// Charges `one` as the wider of two forms.
template <class S>
void widen(Row<S>& one, const Row<S>& other) {
  for (Eigen::Index v = 0; v < one.size(); ++v) one[v] = wider(one[v], other[v]);
}

template <class S>
void widen(RowFunction<S>& one, const RowFunction<S>& other) {
  one.value = wider(one.value, other.value);
  widen(one.gradient, other.gradient);
}

/// A share e, at most 1, of a sum of exponentials. A backward of logaddexp has it as 1 / (1 + 1 /
/// e), which is 0 where 1 / e overflows.
template <class S>
S share_of_joined(const S& e) {
  return e;
}

inline Tracked share_of_joined(Tracked e) {
  const double size = tracking::magnitude(e.v);
  if ((size - kThreshold * e.err) * tracking::largest < 1.0) e.err += size;
  return e;
}

/// exp of the logarithm of a share, which is its own less that of the whole: at most 1, but for
/// what a few operations on numbers of that size round, however far the part may be off.
template <class S>
S exp_of_share(const S& log_share) {
  return exp(log_share);
}

inline Tracked exp_of_share(const Tracked& log_share) {
  using namespace tracking;
  const Tracked e = exp(log_share);
  if (!breaks(log_share, 1.0)) return e;
  constexpr double kOperations = 8.0;  // of both logarithms, their difference, and their stores
  const double unit = std::max({current->roundoff, current->stage(Stage::logits).roundoff,
                                current->stage(Stage::log_prob).roundoff});
  const Real rounded = kThreshold * kOperations * product(unit, log_share.peak);
  const Real highest = std::max(log_share.v, rounded);
  if (!(log_share.v + whole_reach(log_share) > highest)) return e;
  const auto ends = [&](const auto& reach) {
    const Real off = reach(log_share);
    return Ends{std::exp(log_share.v - off), std::exp(std::min(log_share.v + off, highest))};
  };
  return within_ends(exp(without_error(log_share)), ends(whole_reach), ends(undecided_reach));
}

/// The probability of a log-prob, whose normaliser may be `joined` of parts of the row.
template <class S>
S probability(const S& log_prob, bool joined) {
  const S p = exp(log_prob);
  return joined ? share_of_joined(p) : p;
}

/// The same of a row.
template <class S>
Row<S> probabilities(const Row<S>& log_prob, bool joined) {
  Row<S> result(log_prob.size());
  for (Eigen::Index v = 0; v < log_prob.size(); ++v) result[v] = probability(log_prob[v], joined);
  return result;
}

/// The gradient with respect to x of sum_v g_v log_softmax(x)_v: g - p sum(g), with p = softmax(x).
template <class S>
Row<S> log_softmax_gradient_at(const Row<S>& p, const Row<S>& g) {
  Sum<S> sum(g.size());
  for (Eigen::Index v = 0; v < g.size(); ++v) sum.add(g[v]);
  const S total = sum.value();
  // Where the total is undefined, nothing is said of impossible tokens either.
  if (is_nan(total)) return Row<S>::Constant(g.size(), total);
  Row<S> result(g.size());
  for (Eigen::Index v = 0; v < g.size(); ++v) result[v] = g[v] - multiplied(p[v], total);
  return result;
}

/// The same at log-probs, whose normaliser may be `joined` of parts of the row: what comes back to
/// those has the format that they were stored in.
template <class S>
Row<S> log_softmax_gradient(const Row<S>& log_prob, Row<S> g, bool joined) {
  for (S& slope : g) slope = store(Stage::log_prob, slope);
  return log_softmax_gradient_at(probabilities(log_prob, joined), g);
}

}  // namespace lossgate::reference
