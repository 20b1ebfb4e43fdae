// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "reference/losses/policy_terms.h"

namespace lossgate::reference {

/// The algebraically equal ways to evaluate k3; "closed" keeps expm1 in the derivative as well,
/// where differentiating expm1 automatically forms (expm1(x) + 1) - 1.
inline const std::vector<std::string> kK3Forms = {"expm1(x) - x, closed", "expm1(x) - x",
                                                  "exp(x) - x - 1", "exp(x) - 1 - x"};

/// Estimators of KL(policy || reference) from one sample per token (J. Schulman, "Approximating KL
/// divergence", 2020), x = ref_log_prob - log_prob clamped to +-kl_input_clamp:
///   k1 = -x,   k2 = x^2 / 2,   k3 = exp(x) - x - 1,
/// times the importance weight where kl_weighted, then clamped to +-kl_output_clamp.
template <class S>
class KlEstimator {
 public:
  explicit KlEstimator(const Inputs<S>& in)
      : in_(in),
        kind_(in.spec().choice("kl_estimator")),
        input_(limit(in, "kl_input_clamp")),
        output_(limit(in, "kl_output_clamp")),
        half_(constant<S>(0.5L)) {}

  struct Value {
    S value;
    S slope;         ///< of the estimate without its weight, with respect to log_prob
    S weight_slope;  ///< with respect to the weight
  };

  /// `weight` is the importance weight, or null where the estimator is not weighted. The slope with
  /// respect to log_prob, the weight held fixed, is the weight's product with `slope`.
  Value operator()(const S& log_prob, const S& ref_log_prob, const S* weight) const {
    const S difference = ref_log_prob - log_prob;
    const S x = input_.bounded ? clamp(difference, -input_.at, input_.at) : difference;
    const Term<S> plain = estimate(x);
    Value kl{plain.value, plain.slope, S(0)};
    if (input_.bounded) kl.slope = kl.slope * clamp_slope(difference, -input_.at, input_.at);
    if (weight) kl = {*weight * plain.value, kl.slope, plain.value};
    if (!output_.bounded) return kl;
    const S flows = clamp_slope(kl.value, -output_.at, output_.at);
    return {clamp(kl.value, -output_.at, output_.at), kl.slope * flows, kl.weight_slope * flows};
  }

 private:
  struct Limit {
    bool bounded;
    S at;
  };

  static Limit limit(const Inputs<S>& in, std::string_view option) {
    const bool bounded = !in.spec().is_none(option);
    return {bounded, bounded ? in.option(option) : S(0)};
  }

  /// Value and derivative with respect to log_prob, that is minus the one with respect to x.
  Term<S> estimate(const S& x) const {
    if (kind_ == "k1") return {-x, constant<S>(1.0L)};
    if (kind_ == "k2") return {half_ * x * x, -x};
    if (in_.form_undeclared()) return widest(x);
    for (std::size_t form = 0; form < kK3Forms.size(); ++form) {
      if (in_.form(kK3Forms[form])) return k3(x, form);
    }
    return k3(x, 0);
  }

  static Term<S> k3(const S& x, std::size_t form) {
    const auto at = value_of(x);
    if (at > 0 && at - at != 0) return {x, -x};  // the limit, not inf - inf (C3)
    if (form == 0) {
      const S grown = expm1(x);
      return {grown - x, -grown};
    }
    const S one = constant<S>(1.0L);
    if (form == 1) {
      const S grown = expm1(x);
      return {grown - x, one - (grown + one)};
    }
    const S power = exp(x);
    return {form == 2 ? power - x - one : power - one - x, one - power};
  }

  static Term<S> widest(const S& x) {
    Term<S> all = k3(x, 0);
    for (std::size_t form = 1; form < kK3Forms.size(); ++form) {
      const Term<S> next = k3(x, form);
      all = {either(all.value, next.value), either(all.slope, next.slope)};
    }
    return all;
  }

  const Inputs<S>& in_;
  std::string_view kind_;
  Limit input_, output_;
  S half_;
};

}  // namespace lossgate::reference
