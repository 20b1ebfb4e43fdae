// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "impl/faulty/kl_size.h"
#include "impl/faulty/tape_functions.h"

namespace lossgate::impl {

/// The KL term of the eager GRPO program.
template <class Format>
class GrpoKl {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  /// `naive` leaves out what keeps the gradient finite behind the output clamp.
  GrpoKl(const LossSpec& spec, bool naive)
      : kind_(spec.choice("kl_estimator")),
        weighted_(spec.number("kl_weighted") != 0.0),
        naive_(naive),
        input_limit_(limit_of(spec, "kl_input_clamp")),
        output_limit_(limit_of(spec, "kl_output_clamp")) {}

  void forget_input_limit() { input_limit_ = std::nullopt; }
  void forget_output_limit() { output_limit_ = std::nullopt; }
  bool weighted() const { return weighted_; }

  Variable operator()(Variable log_prob, Variable ref_log_prob, Variable log_weight,
                      Variable weight) const {
    Variable x = ref_log_prob - log_prob;
    if (input_limit_) x = bounded(x, *input_limit_);
    const bool missing = ref_log_prob.value() != ref_log_prob.value();
    if (!naive_ && !missing) {
      if (const auto decided = decision(x, static_cast<double>(log_weight.value()))) {
        return x.tape().constant(static_cast<V>(*decided));
      }
    }
    const Variable kl = estimate(x);
    if (!weighted_) return clamped(kl);
    const bool vanishes = !naive_ && x.value() == V(0) && std::isinf(weight.value());
    return vanishes ? product_of_zero(kl, x) : clamped(weight * kl);
  }

 private:
  static Variable number(Variable like, double x) {
    return like.tape().constant(static_cast<V>(x));
  }

  static Variable bounded(Variable x, double limit) {
    return clamp(x, static_cast<V>(-limit), static_cast<V>(limit));
  }

  Variable clamped(Variable kl) const { return output_limit_ ? bounded(kl, *output_limit_) : kl; }

  Variable estimate(Variable x) const {
    if (kind_ == "k1") return -x;
    // Halved before the square can overflow.
    if (kind_ == "k2") return number(x, 0.5) * x * x;
    return std::fabs(x.value()) <= V(1) ? closed_k3(x) : expm1(x) - x;
  }

  /// expm1(x) - x with the derivative expm1(x): the chain's own, (expm1(x) + 1) - 1, loses the
  /// digits that expm1 has won.
  static Variable closed_k3(Variable x) {
    const Variable grown = detach(expm1(x)), at = detach(x);
    return (grown - at) + grown * (x - at);
  }

  /// The term where it does not depend on its input any more: behind the output clamp, or for a
  /// token that has become impossible. Such a term is a constant. NaN decides nothing.
  std::optional<double> decision(Variable x, double log_weight) const {
    const double at = static_cast<double>(x.value());
    if (weighted_ && log_weight == -std::numeric_limits<double>::infinity()) return 0.0;
    if (!output_limit_) return std::nullopt;
    const double log_size = log_of_estimate(kind_, at) + (weighted_ ? log_weight : 0.0);
    if (!(log_size > std::log(*output_limit_) + 1e-6)) return std::nullopt;
    return kind_ == "k1" && at > 0.0 ? -*output_limit_ : *output_limit_;
  }

  /// An estimate of exactly 0 times a weight that overflows: the value is 0, and so is the slope,
  /// but for k1, whose slope is the weight.
  Variable product_of_zero(Variable kl, Variable x) const {
    if (kind_ != "k1") return number(x, 0.0) * x;
    const Variable most = number(x, max_finite(Format::kDtype));
    return kl * most * most;
  }

  std::string kind_;
  bool weighted_, naive_;
  std::optional<double> input_limit_, output_limit_;
};

}  // namespace lossgate::impl
