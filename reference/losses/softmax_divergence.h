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
Softmax<S> softmax(Row<S> x, bool shifted_form) {
  const LogSumExp<S> whole = log_sum_exp(x);
  Row<S> log_prob = log_softmax(x, whole, shifted_form);
  return {std::move(x), whole, std::move(log_prob)};
}

/// sum p (x - y) - (logsumexp(x) - logsumexp(y)), which rounds at the size of x - y; without y, the
/// cross-entropy of p and x: logsumexp(x) - sum p x.
template <class S>
S divergence_of_gaps(const Softmax<S>& p, const Softmax<S>& of, const Softmax<S>* less) {
  const auto log_z = [](const Softmax<S>& a) {
    return store(Stage::log_prob, a.whole.shift + a.whole.log_sum);
  };
  Sum<S> mean(p.x.size());
  for (Eigen::Index v = 0; v < p.x.size(); ++v) {
    mean.add(weighed(exp(p.log_prob[v]), less ? of.x[v] - less->x[v] : of.x[v]));
  }
  return less ? mean.value() - (log_z(of) - log_z(*less)) : log_z(of) - mean.value();
}

/// The divergence of two softmaxes with its gradient by the student's logits, times `scale`, in the
/// form that the arithmetic declares, or as the widest.
template <class S>
RowFunction<S> softmax_divergence(const Inputs<S>& in, const Softmax<S>& student,
                                  const Softmax<S>& teacher, bool soft, const S& scale) {
  const auto beta = static_cast<Real>(in.spec().number("beta"));
  const bool once = in.form(kOnceForm), gaps = in.form(kGapForm);
  const Row<S>&p = student.log_prob, &q = teacher.log_prob;
  Divergence<S> d = soft   ? soft_cross_entropy(p, q)
                    : once ? jensen_shannon_once(p, q, beta)
                           : jensen_shannon(p, q, beta);
  for (S& slope : d.slope) slope = scale * slope;
  RowFunction<S> result{d.value, log_softmax_gradient(p, d.slope)};
  if ((beta != 0 && beta != 1) || (once && !gaps)) return result;
  RowFunction<S> other = result;
  if (beta == 0) {
    other.value = soft ? divergence_of_gaps<S>(teacher, student, nullptr)
                       : divergence_of_gaps(teacher, teacher, &student);
  } else {
    other.value = divergence_of_gaps(student, student, &teacher);
    for (Eigen::Index v = 0; v < p.size(); ++v) {
      other.gradient[v] = scale * weighed(exp(p[v]), (p[v] - q[v]) - other.value);
    }
  }
  if (gaps) return other;
  widen(result, other);
  return result;
}

}  // namespace lossgate::reference
