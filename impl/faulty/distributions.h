// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "impl/faulty/tape_functions.h"

/// Discrete distributions on a tape, as log-probs.
namespace lossgate::impl {

template <class Format>
using VarRow = std::vector<Var<Format>>;

template <class Format>
bool is_minus_infinity(Var<Format> a) {
  return a.value() == -std::numeric_limits<typename Format::Value>::infinity();
}

/// The largest value; NaN where one is in the row.
template <class Format>
Var<Format> maximum_of(const VarRow<Format>& row) {
  Var<Format> largest = row.front();
  for (std::size_t v = 1; v < row.size(); ++v) largest = maximum(largest, row[v]);
  return largest;
}

/// The same without history.
template <class Format>
Var<Format> detached_maximum(const VarRow<Format>& row) {
  return detach(maximum_of(row));
}

/// log sum exp, -infinity where nothing is possible.
template <class Format>
Var<Format> log_sum_exp(const VarRow<Format>& row) {
  const Var<Format> largest = detached_maximum(row);
  if (is_minus_infinity(largest)) return largest;
  VarRow<Format> powers;
  for (const Var<Format>& x : row) powers.push_back(exp(x - largest));
  return largest + log(largest.tape().sum(powers));
}

/// x - log sum exp(x), of a row whose largest value is about 0.
template <class Format>
VarRow<Format> normalised(const VarRow<Format>& row) {
  VarRow<Format> powers;
  for (const Var<Format>& x : row) powers.push_back(exp(x));
  Tape<Format>& tape = row.front().tape();
  const VarRow<Format> log_sums = tape.expand(log(tape.sum(powers)), row.size());
  VarRow<Format> result;
  for (std::size_t v = 0; v < row.size(); ++v) result.push_back(row[v] - log_sums[v]);
  return result;
}

/// (x - max) - log sum exp(x - max)
template <class Format>
VarRow<Format> log_softmax(const VarRow<Format>& row) {
  const Var<Format> largest = detached_maximum(row);
  VarRow<Format> shifted;
  for (const Var<Format>& x : row) shifted.push_back(x - largest);
  return normalised(shifted);
}

/// The same, with a history of the maximum.
template <class Format>
VarRow<Format> attached_log_softmax(const VarRow<Format>& row) {
  const VarRow<Format> largest = row.front().tape().expand(maximum_of(row), row.size());
  VarRow<Format> shifted;
  for (std::size_t v = 0; v < row.size(); ++v) shifted.push_back(row[v] - largest[v]);
  return normalised(shifted);
}

enum class DivergenceFault {
  none,
  joined,           ///< none: the mixture by logaddexp
  log_of_mixture,   ///< log(beta q + (1 - beta) p)
  zero_times_log,   ///< p log p without a selection
  entries_repaired  ///< the same, and nan_to_num of every entry
};

/// The generalised Jensen-Shannon divergence of teacher and student (arXiv:2306.13649).
template <class Format>
class JensenShannon {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  /// `soft`: at beta = 0 the teacher's entropy is left out.
  JensenShannon(double beta, DivergenceFault fault, bool soft = false)
      : beta_(beta), fault_(fault), soft_(soft) {}

  Variable operator()(const VarRow<Format>& student, const VarRow<Format>& teacher) const {
    Tape<Format>& tape = student.front().tape();
    VarRow<Format> from_student, from_teacher;
    for (std::size_t v = 0; v < student.size(); ++v) {
      const Variable p = student[v], q = teacher[v];
      if (beta_ == 0.0) {
        from_teacher.push_back(entry(q, soft_ ? -p : q - p));
      } else if (beta_ == 1.0) {
        from_student.push_back(entry(p, p - q));
      } else if (impossible(p) && impossible(q)) {
        continue;
      } else {
        const Variable m = mixture(p, q);
        from_teacher.push_back(entry(q, q - m));
        from_student.push_back(entry(p, p - m));
      }
    }
    if (beta_ == 0.0) return tape.sum(from_teacher);
    if (beta_ == 1.0) return tape.sum(from_student);
    return tape.constant(static_cast<V>(beta_)) * tape.sum(from_teacher) +
           tape.constant(static_cast<V>(1.0 - beta_)) * tape.sum(from_student);
  }

 private:
  bool selects() const {
    return fault_ != DivergenceFault::zero_times_log && fault_ != DivergenceFault::entries_repaired;
  }
  bool impossible(Variable log_prob) const { return selects() && is_minus_infinity(log_prob); }

  Variable entry(Variable log_prob, Variable difference) const {
    if (impossible(log_prob)) return log_prob.tape().constant(0);
    const Variable term = exp(log_prob) * difference;
    return fault_ == DivergenceFault::entries_repaired ? nan_to_num(term) : term;
  }

  Variable mixture(Variable p, Variable q) const {
    Tape<Format>& tape = p.tape();
    if (fault_ == DivergenceFault::log_of_mixture) {
      return log(tape.constant(static_cast<V>(beta_)) * exp(q) +
                 tape.constant(static_cast<V>(1.0 - beta_)) * exp(p));
    }
    const V share = static_cast<V>(beta_);
    const Variable a = p + tape.constant(std::log1p(-share)),
                   b = q + tape.constant(std::log(share));
    return fault_ == DivergenceFault::joined ? logaddexp(a, b) : log_sum_exp(VarRow<Format>{a, b});
  }

  double beta_;
  DivergenceFault fault_;
  bool soft_;
};

}  // namespace lossgate::impl
