// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "reference/problem.h"
#include "reference/sums.h"

namespace lossgate::reference {

/// The log-probs of one pair, of the chosen answer and the rejected one, c and r, and the
/// reference's.
template <class S>
struct Answers {
  S chosen, rejected, ref_chosen, ref_rejected;
};

/// How much likelier a policy has made the chosen answer than the rejected one, beside a reference:
/// D = (c - r) - (ref_c - ref_r), and what a loss has of it (see Dpo).
template <class S>
class Preference {
 public:
  /// `by_policy`: D is of (c - r) and (ref_c - ref_r); else of each answer's, where a form is
  /// declared.
  Preference(const Inputs<S>& in, bool by_policy)
      : undeclared_(in.undeclared()),
        by_policy_(by_policy),
        has_margin_(in.spec().number("margin") != 0.0),
        beta_(in.option("beta")),
        margin_(in.option("margin")),
        one_(selected<S>(1.0)),
        two_(selected<S>(2.0)) {}

  /// beta D - margin, or beta (D - margin / beta), which no form tells apart: forms name how D is
  /// made. Where none is declared the margin may meet any of the terms first, scaled or not.
  S less_margin(const Answers<S>& of) const {
    const S last = scaled(of) - margin_;
    if (!has_margin_) return last;
    const S either_way = wider(last, S(beta_ * less(of, margin_ / beta_)));
    return undeclared_ ? wider(either_way, each_scaled(of, S(-margin_))) : either_way;
  }

  /// beta (c - ref_c) - margin and beta (r - ref_r), whose difference that is.
  std::pair<S, S> rewards(const Answers<S>& of) const {
    return {S(beta_ * S(of.chosen - of.ref_chosen) - margin_),
            S(beta_ * S(of.rejected - of.ref_rejected))};
  }

  /// 1 - beta D, of whose terms the constant may meet any first.
  S short_of_one(const Answers<S>& of) const {
    const S rest = one_ - scaled(of);
    return undeclared_ ? wider(rest, S(-each_scaled(of, S(-one_)))) : rest;
  }

  /// D - 1 / (2 beta), the same.
  S off_target(const Answers<S>& of) const { return less(of, one_ / (two_ * beta_)); }

 private:
  /// Of two policies or of two answers, as it is stored.
  static S log_ratio(const S& a, const S& b) { return store(Stage::log_prob, a - b); }

  /// D, and more beside it, term by term.
  template <class... More>
  static S each(const Answers<S>& of, const More&... more) {
    const auto& [c, r, ref_c, ref_r] = of;
    return sum_in_any_order(std::array{c, S(-r), S(-ref_c), ref_r, more...});
  }

  /// beta D, and more beside it, of four scaled log-probs.
  template <class... More>
  S each_scaled(const Answers<S>& of, const More&... more) const {
    const auto& [c, r, ref_c, ref_r] = of;
    return each(Answers<S>{beta_ * c, beta_ * r, beta_ * ref_c, beta_ * ref_r}, more...);
  }

  /// D
  S difference(const Answers<S>& of) const {
    const auto& [c, r, ref_c, ref_r] = of;
    const S of_answers = log_ratio(c, ref_c) - log_ratio(r, ref_r),
            of_policies = log_ratio(c, r) - log_ratio(ref_c, ref_r);
    if (!undeclared_) return by_policy_ ? of_policies : of_answers;
    return wider(each(of), wider(of_answers, of_policies));
  }

  /// D - x
  S less(const Answers<S>& of, const S& x) const {
    const S last = difference(of) - x;
    return undeclared_ ? wider(last, each(of, S(-x))) : last;
  }

  /// beta D, the difference of two rewards, of two policies', or of four scaled log-probs.
  S scaled(const Answers<S>& of) const {
    const S last = beta_ * difference(of);
    if (!undeclared_) return last;
    const auto& [c, r, ref_c, ref_r] = of;
    const S of_answers = difference_of_sums(S(beta_ * (c - ref_c)), S(beta_ * (r - ref_r))),
            of_policies = difference_of_sums(S(beta_ * (c - r)), S(beta_ * (ref_c - ref_r)));
    return wider(wider(last, each_scaled(of)), wider(of_answers, of_policies));
  }

  bool undeclared_, by_policy_, has_margin_;
  S beta_, margin_, one_, two_;
};

}  // namespace lossgate::reference
