// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "impl/cuda/policy_math.h"

/// The generalised Jensen-Shannon divergence of teacher q and student p, entry by entry, from
/// log-probs (arXiv:2306.13649).
namespace lossgate::impl {

template <class F>
LOSSGATE_HOST_DEVICE inline bool is_impossible(F log_prob) {
  return log_prob == -std::numeric_limits<F>::infinity();
}

/// p x, where an impossible entry adds nothing, whatever x is, and one whose probability underflows
/// nothing finite: a product with infinity shows.
template <class F>
LOSSGATE_HOST_DEVICE inline F weighed(F log_prob, F p, F x) {
  return is_impossible(log_prob) || (p == F(0) && x - x == F(0)) ? F(0) : p * x;
}

/// beta = 0 is the forward KL of the teacher to the student, beta = 1 the reverse; between them
/// both are compared with the mixture.
template <class F>
struct DivergenceOptions {
  F beta, rest;          ///< rest = 1 - beta
  F log_beta, log_rest;  ///< 0 where the mixture is not formed
  bool soft = false;     ///< beta = 0 without the teacher's entropy
};

/// What one entry adds to KL(teacher || m) and to KL(student || m), and what the second was
/// weighed: log p - log m.
template <class F>
struct DivergenceEntry {
  F from_teacher, from_student, difference;
};

/// log(exp(a) + exp(b)), one of which is not -infinity
template <class F>
LOSSGATE_HOST_DEVICE inline F log_add(F a, F b) {
  using std::exp;
  using std::log1p;
  const F large = a >= b ? a : b, small = a >= b ? b : a;
  return large + log1p(exp(small - large));
}

template <class F>
LOSSGATE_HOST_DEVICE inline DivergenceEntry<F> divergence_entry(
    F student, F teacher, const DivergenceOptions<F>& options) {
  using std::exp;
  if (options.beta == F(0)) {
    const F surprise = options.soft ? -student : teacher - student;
    return {weighed(teacher, exp(teacher), surprise), F(0), F(0)};
  }
  if (options.rest == F(0)) {
    const F difference = student - teacher;
    return {F(0), weighed(student, exp(student), difference), difference};
  }
  if (is_impossible(student) && is_impossible(teacher)) return {F(0), F(0), F(0)};
  const F mixture = log_add(student + options.log_rest, teacher + options.log_beta);
  const F difference = student - mixture;
  return {weighed(teacher, exp(teacher), teacher - mixture),
          weighed(student, exp(student), difference), difference};
}

template <class F>
LOSSGATE_HOST_DEVICE inline F divergence_of(F from_teacher, F from_student,
                                            const DivergenceOptions<F>& options) {
  if (options.beta == F(0)) return from_teacher;
  if (options.rest == F(0)) return from_student;
  return options.beta * from_teacher + options.rest * from_student;
}

/// The divergence's derivative with respect to the student's log-prob of one entry, these being
/// free; what sums away where they are normalised is left out where both sides are.
template <class F>
LOSSGATE_HOST_DEVICE inline F divergence_slope(F student, F teacher,
                                               const DivergenceEntry<F>& entry,
                                               const DivergenceOptions<F>& options) {
  using std::exp;
  if (options.beta == F(0)) return -exp(teacher);
  if (options.rest == F(0)) return entry.from_student + exp(student);
  return options.rest * entry.from_student;
}

}  // namespace lossgate::impl
