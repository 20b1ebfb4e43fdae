// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "reference/computed_once.h"
#include "reference/one_plus.h"
#include "reference/rows.h"

namespace lossgate::reference {

/// Probabilities are made of the very log-probs that they stand beside, and a mixture of their
/// logarithms. What takes them from a softmax of their own, which has an error of its own, or a
/// mixture from an expm1 declares no form.
inline constexpr const char* kOnceForm = "p = exp(log p)";

/// A divergence between two discrete distributions and its derivative with respect to the student's
/// log-probs, these being taken as free: normalisation is the caller's.
template <class S>
struct Divergence {
  S value;
  Row<S> slope;
  Row<S> gap;  ///< what the student's probability multiplies in the slope

  /// The slopes of `scale` divergences.
  Row<S> scaled(const S& scale) const {
    Row<S> result(slope.size());
    for (Eigen::Index v = 0; v < slope.size(); ++v) {
      result[v] = distributed(Cancelling<S>{slope[v], gap[v]}, scale);
    }
    return result;
  }
};

/// log(exp(a) + exp(b)) without overflow; -infinity on either side is exact. A logsumexp of both
/// takes the logarithm of the sum 1 + e, which it has rounded.
template <class S>
S log_add(const S& a, const S& b) {
  return monotonic(
      []<class T>(const T& x, const T& y) {
        const bool x_is_larger = value_of(x) >= value_of(y);
        const T &large = x_is_larger ? x : y, &small = x_is_larger ? y : x;
        const T e = exp(small - large);
        return T(large + wider(T(log1p(e)), T(log(constant<T>(1.0L) + e))));
      },
      a, b);
}

/// What the logarithm of a mixture may come of, and its derivative with it.
enum class Mixture {
  by_logarithms,  ///< logaddexp or logsumexp of both
  in_any_way,     ///< or log1p of an expm1, from either side
};

/// The share that the student has of a mixture m, w being what each side weighs. Where m is log p +
/// log1p(w expm1(log q - log p)), or the same from q, a backward has exp as expm1 + 1, and of the
/// side that it starts from what the other leaves of 1.
template <class S>
struct ShareOfMixture {
  const S &student, &teacher, &log_of_student, &log_of_teacher, &log_m;  ///< log w, log m

  S operator()(Mixture form) const {
    const S share = share_of_joined(of(student, log_of_student));
    const bool possible = value_of(student) != -INFINITY && value_of(teacher) != -INFINITY;
    if (form == Mixture::by_logarithms || !possible) return share;
    const S one = selected<S>(1.0);
    const auto from_student = [&] { return S(one - by_expm1(teacher, student, log_of_teacher)); };
    const auto from_either = [&] {
      return wider(by_expm1(student, teacher, log_of_student),
                   S(one - of(teacher, log_of_teacher)));
    };
    return wider(share, choose(value_of(student) >= value_of(teacher), from_student, from_either));
  }

 private:
  S of(const S& side, const S& log_weight) const {
    return exp_of_share((side + log_weight) - log_m);
  }
  S by_expm1(const S& small, const S& large, const S& log_weight) const {
    return of(large, log_weight) * (expm1(small - large) + selected<S>(1.0));
  }
};

/// The generalised Jensen-Shannon divergence of teacher q and student p, from log-probs:
///   beta = 0: sum q (log q - log p)                             (forward KL)
///   beta = 1: sum p (log p - log q)                             (reverse KL)
///   else: beta sum q (log q - log m) + (1 - beta) sum p (log p - log m), m = beta q + (1 - beta)
///   p.
/// Source: Agarwal et al. 2024 (arXiv:2306.13649), section 3; TRL `generalized_jsd_loss`.
/// An entry of probability exactly 0 contributes nothing, whatever stands against it. Where the
/// student's is 0 and the teacher's is not, the forward KL is infinite; the mixture is not.
///
/// The slope is charged as differentiation term by term forms it: (1 - beta) p (log p - log m),
/// plus terms that cancel in exact arithmetic and leave their rounding.
template <class S>
Divergence<S> jensen_shannon(const Row<S>& student, const Row<S>& teacher, Real beta,
                             Mixture form = Mixture::in_any_way) {
  const Eigen::Index n = student.size();
  Divergence<S> result{S(0), Row<S>(n), zero_row<S>(n)};
  Sum<S> from_teacher(n), from_student(n);
  const S share = constant<S>(beta), rest = one_plus<S>(-beta);
  const S log_share = log(share), log_rest = wider(S(log1p(-share)), S(log(rest)));
  for (Eigen::Index v = 0; v < n; ++v) {
    const S p = exp(student[v]), q = exp(teacher[v]);
    if (beta == 0) {
      from_teacher.add(weighed(q, teacher[v] - student[v]));
      result.slope[v] = -q;
    } else if (beta == 1) {
      result.gap[v] = student[v] - teacher[v];
      const S term = weighed(p, result.gap[v]);
      from_student.add(term);
      result.slope[v] = term + p;
    } else {
      const S mixture = log_add(student[v] + log_rest, teacher[v] + log_share);
      from_teacher.add(weighed(q, teacher[v] - mixture));
      result.gap[v] = student[v] - mixture;
      from_student.add(weighed(p, result.gap[v]));
      const ShareOfMixture<S> share_of{student[v], teacher[v], log_rest, log_share, mixture};
      const S through_mixture = share_of(form);
      result.slope[v] = weighed_by(rest, p, result.gap[v]) +
                        (rest * p - weighed(share * q + rest * p, through_mixture));
    }
  }
  result.value = beta == 0   ? from_teacher.value()
                 : beta == 1 ? from_student.value()
                             : share * from_teacher.value() + rest * from_student.value();
  return result;
}

/// First derivatives of the divergence of a mixture by log p and log q, and the second one by both,
/// without its sign. The other second ones are first + mixed.
struct MixtureDerivatives {
  Real student = 0.0L, teacher = 0.0L, mixed = 0.0L;
};

/// Those of one entry of a mixture, which is beta q + (1 - beta) p.
class MixedEntry {
 public:
  MixedEntry(Real student, Real teacher, Real beta)
      : student_(student), teacher_(teacher), beta_(beta), here_(weights(0.0L, 0.0L)) {
    log_m_ = std::log(here_.p + here_.q);
  }

  MixtureDerivatives derivatives() const { return of(here_, student_ - log_m_, teacher_ - log_m_); }

  /// The largest that they may be where both log-probs are off by so much: a share of the mixture,
  /// and mixed, grow with p and q, and a gap by no more than both are off.
  MixtureDerivatives largest(Real by_student, Real by_teacher) const {
    const Real off = by_student + by_teacher;
    return of(weights(by_student, by_teacher), std::fabs(student_ - log_m_) + off,
              std::fabs(teacher_ - log_m_) + off);
  }

 private:
  struct Weights {
    Real p, q;
  };

  Weights weights(Real by_student, Real by_teacher) const {
    return {(1.0L - beta_) * std::exp(student_ + by_student),
            beta_ * std::exp(teacher_ + by_teacher)};
  }

  static MixtureDerivatives of(const Weights& weights, Real student, Real teacher) {
    const auto& [p, q] = weights;
    if (p + q == 0.0L) return {};
    return {p == 0.0L ? 0.0L : p * student, q == 0.0L ? 0.0L : q * teacher, p * (q / (p + q))};
  }

  Real student_, teacher_, beta_;
  Weights here_;
  Real log_m_ = 0.0L;
};

/// The same divergence of log-probs that are computed once: each of them stands in its probability,
/// beside it and in the mixture, and most of what its error does to these cancels.
template <class S>
Divergence<S> jensen_shannon_once(const Row<S>& student, const Row<S>& teacher, Real beta) {
  Divergence<S> apart = jensen_shannon(student, teacher, beta, Mixture::by_logarithms);
  if constexpr (std::is_same_v<S, Tracked>) {
    if (beta == 0 || beta == 1) return apart;  // nothing cancels between p and log p - log q
    const Divergence<S> together =
        jensen_shannon(as_computed(student), as_computed(teacher), beta, Mixture::by_logarithms);
    ErrorsOfOnce of_value(student.size());
    for (Eigen::Index v = 0; v < student.size(); ++v) {
      const MixedEntry entry(student[v].v, teacher[v].v, beta);
      const auto by = entry.derivatives(), most = entry.largest(tracking::whole_reach(student[v]),
                                                                tracking::whole_reach(teacher[v]));
      of_value.add(student[v], by.student, most.student + 2 * most.mixed);
      of_value.add(teacher[v], by.teacher, most.teacher + 2 * most.mixed);
      ErrorsOfOnce of_slope(1);
      of_slope.add(student[v], by.student + by.mixed, most.student + 3 * most.mixed);
      of_slope.add(teacher[v], by.mixed, 2 * most.mixed);
      apart.slope[v] = of_slope.narrowed(apart.slope[v], together.slope[v]);
    }
    apart.value = of_value.narrowed(apart.value, together.value);
  }
  return apart;
}

/// The forward KL without the teacher's entropy: -sum q log p, with the same slope -q.
template <class S>
Divergence<S> soft_cross_entropy(const Row<S>& student, const Row<S>& teacher) {
  const Eigen::Index n = student.size();
  Divergence<S> result{S(0), Row<S>(n), zero_row<S>(n)};
  Sum<S> total(n);
  for (Eigen::Index v = 0; v < n; ++v) {
    const S q = exp(teacher[v]);
    total.add(weighed(q, -student[v]));
    result.slope[v] = -q;
  }
  result.value = total.value();
  return result;
}

}  // namespace lossgate::reference
