// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reference/losses/divergence.h"
#include "reference/problem.h"

/// The generalised Jensen-Shannon divergence of two softmaxes, p of x and q of y.
namespace lossgate::reference {

/// Another way to a KL divergence than sum p (log p - log q).
inline constexpr const char* kGapForm = "E[x - y] - (logsumexp(x) - logsumexp(y))";

inline std::vector<std::string> softmax_divergence_forms() {
  return joined_forms({kShiftedForm, kLogSumExpForm, kGapForm}, {kOnceForm});
}

/// The softmax of a row of logits: these, their normaliser, and log-probs.
template <class S>
struct Softmax {
  Row<S> x;
  LogSumExp<S> whole;
  Row<S> log_prob;
};

template <class S>
Softmax<S> softmax(Row<S> x, SoftmaxForm form) {
  const LogSumExp<S> whole = log_sum_exp(x);
  Row<S> log_prob = log_softmax(x, whole, form);
  return {std::move(x), whole, std::move(log_prob)};
}

/// The KL divergence of p from q as E[x - y] - (logsumexp(x) - logsumexp(y)), which rounds at the
/// size of x - y.
template <class S>
S kl_of_gaps(const Softmax<S>& p, const Softmax<S>& q) {
  Sum<S> mean(p.x.size());
  for (Eigen::Index v = 0; v < p.x.size(); ++v) {
    mean.add(weighed(exp(p.log_prob[v]), p.x[v] - q.x[v]));
  }
  return mean.value() - (stored(p.whole) - stored(q.whole));
}

/// The cross-entropy of p and q as logsumexp(y) - E[y], which rounds at the size of y.
template <class S>
S cross_entropy_of_logits(const Softmax<S>& p, const Softmax<S>& q) {
  Sum<S> mean(p.x.size());
  for (Eigen::Index v = 0; v < p.x.size(); ++v) mean.add(weighed(exp(p.log_prob[v]), q.x[v]));
  return stored(q.whole) - mean.value();
}

/// The divergence of two softmaxes with its gradient by the student's logits, times `scale`, in the
/// form that the arithmetic declares, or as the widest. The gradient is empty where nobody wants
/// it.
template <class S>
RowFunction<S> softmax_divergence(const Inputs<S>& in, const Softmax<S>& student,
                                  const Softmax<S>& teacher, bool soft, const S& scale,
                                  bool wanted) {
  const auto beta = static_cast<Real>(in.spec().number("beta"));
  const bool once = in.form(kOnceForm), gaps = in.form(kGapForm);
  const Row<S>&p = student.log_prob, &q = teacher.log_prob;
  const auto charged = [&](RowFunction<S> function) {
    if (wanted && in.undeclared()) charge_shift(student.x, function.gradient);
    return function;
  };
  const Divergence<S> d = soft   ? soft_cross_entropy(p, q)
                          : once ? jensen_shannon_once(p, q, beta)
                                 : jensen_shannon(p, q, beta);
  RowFunction<S> result{d.value, {}};
  if (wanted) result.gradient = log_softmax_gradient(p, d.scaled(scale), in.undeclared());
  if ((beta != 0 && beta != 1) || (once && !gaps)) return charged(std::move(result));
  RowFunction<S> other = result;
  if (beta == 0) {
    other.value = soft ? cross_entropy_of_logits(teacher, student) : kl_of_gaps(teacher, student);
  } else {
    other.value = kl_of_gaps(student, teacher);
    for (Eigen::Index v = 0; v < other.gradient.size(); ++v) {
      const S share = probability(p[v], in.undeclared());
      other.gradient[v] =
          holding_stored(Stage::log_prob, weighed_by(scale, share, (p[v] - q[v]) - other.value),
                         S(share * scale), scale);
    }
  }
  if (gaps) return other;
  widen(result, other);
  return charged(std::move(result));
}

}  // namespace lossgate::reference
