// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "reference/losses/policy_terms.h"
#include "reference/squares.h"

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
      : kind_(in.spec().choice("kl_estimator").back()),
        input_(in, "kl_input_clamp", Stage::log_prob),
        output_(in, "kl_output_clamp"),
        half_(constant<S>(0.5L)),
        one_(constant<S>(1.0L)) {
    for (std::size_t form = 0; form < kK3Forms.size(); ++form) {
      if (in.form(kK3Forms[form])) k3_form_ = form;
    }
  }

  struct Value {
    S value;
    Cancelling<S> slope;  ///< of the estimate without its weight, with respect to log_prob
    S weight_slope;       ///< with respect to the weight
  };

  /// `weight` is the importance weight, or null where the estimator is not weighted. The slope with
  /// respect to log_prob, the weight held fixed, is the weight's product with `slope`.
  Value operator()(const S& log_prob, const S& ref_log_prob, const S* weight) const {
    const S difference = store(Stage::log_prob, ref_log_prob - log_prob);
    const Term<S> x = input_.bounded() ? input_(difference) : Term<S>{difference, selected<S>(1.0)};
    const Estimate plain = estimate(x.value);
    Value kl{plain.value, within(plain.slope, x.slope), S(0)};
    if (weight) kl = {*weight * plain.value, kl.slope, plain.value};
    if (!output_.bounded()) return kl;
    const Term<S> bounded = output_(kl.value);
    return {bounded.value, within(kl.slope, bounded.slope), kl.weight_slope * bounded.slope};
  }

 private:
  /// Behind a bound.
  static Cancelling<S> within(const Cancelling<S>& terms, const S& slope) {
    return {terms.sum * slope, terms.part * slope, terms.multiplied_first * slope};
  }

  /// Value and derivative with respect to log_prob, that is minus the one with respect to x. Of 1
  /// and exp(x), the terms of k3's, the larger one counts, whatever the form: a factor before them
  /// has to fit by itself.
  struct Estimate {
    S value;
    Cancelling<S> slope;
  };

  Estimate estimate(const S& x) const {
    if (kind_ == '1') return {-x, {one_, one_}};
    if (kind_ == '2') {
      const S slope = slope_of_half_square(x);
      return {half_ * x * x, {-slope, one_}};
    }
    return k3_form_ == kEveryForm ? widest(x) : k3(x, k3_form_);
  }

  Estimate k3(const S& x, std::size_t form) const {
    // The limit, not inf - inf (C3).
    return choose(
        value_of(x) == INFINITY,
        [&] {
          return Estimate{x, {-x, x}};
        },
        [&] { return finite_k3(x, form); });
  }

  Estimate finite_k3(const S& x, std::size_t form) const {
    if (form <= 1) {
      const S grown = expm1(x), power = grown + one_;
      const Cancelling<S> slope =
          form == 0 ? Cancelling<S>{-grown, power} : Cancelling<S>{one_ - power, power, power};
      return {grown - x, slope};
    }
    const S power = exp(x);
    return {form == 2 ? power - x - one_ : power - one_ - x, {one_ - power, power, power}};
  }

  Estimate widest(const S& x) const {
    Estimate all = k3(x, 0);
    for (std::size_t form = 1; form < kK3Forms.size(); ++form) {
      const Estimate next = k3(x, form);
      all.value = either(all.value, next.value);
      all.slope.sum = either(all.slope.sum, next.slope.sum);
      all.slope.multiplied_first = next.slope.multiplied_first;
    }
    return all;
  }

  static constexpr std::size_t kEveryForm = static_cast<std::size_t>(-1);

  char kind_;  ///< k1, k2, k3: its digit
  std::size_t k3_form_ = kEveryForm;
  Limit<S> input_, output_;
  S half_, one_;
};

}  // namespace lossgate::reference
