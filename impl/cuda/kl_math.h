// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "impl/cuda/policy_math.h"

namespace lossgate::impl {

enum class KlKind { k1, k2, k3 };

template <class F>
struct KlOptions {
  KlKind kind = KlKind::k3;
  Limit<F> input = {}, output = {};
  bool weighted = false;
};

/// A KL estimate and its derivatives: with respect to log_prob with the importance weight held
/// fixed, to the weight, and, where the latter overflows, to the weight's logarithm instead.
template <class F>
struct KlTerm {
  F value, slope, weight_slope, log_weight_slope;
};

/// An estimate before weighting and its derivative with respect to log_prob.
template <class F>
struct PlainKl {
  F value, slope;
};

template <class F>
LOSSGATE_HOST_DEVICE inline PlainKl<F> plain_kl(KlKind kind, F x) {
  using std::expm1;
  constexpr F infinity = std::numeric_limits<F>::infinity();
  if (kind == KlKind::k1) return {-x, F(1)};
  if (kind == KlKind::k2) return {F(0.5) * x * x, -x};
  if (x == infinity) return {infinity, -infinity};
  const F grown = expm1(x);
  return {grown - x, -grown};
}

template <class F>
LOSSGATE_HOST_DEVICE inline bool is_infinite(F x) {
  return x == x && x - x != F(0);
}

/// weight * |y|, where y, an estimate at x or its derivative, is too large for the format.
template <class F>
LOSSGATE_HOST_DEVICE inline F weighted_by_large(const ImportanceWeight<F>& weight, KlKind kind,
                                                F x) {
  using std::exp;
  using std::fabs;
  if (kind != KlKind::k2 || is_infinite(x)) return exp(weight.log_value + fabs(x));
  // Not by logarithms: the roundoff of a large one is as much larger in its exp.
  if (weight.value >= std::numeric_limits<F>::min()) return (weight.value * (F(0.5) * x)) * x;
  const F root = exp(F(0.25) * weight.log_value);
  return ((root * (F(0.5) * x)) * root) * ((root * x) * root);
}

/// weight * y, where y is an estimate at x or its derivative, also where one factor overflows and
/// the other makes up for it.
template <class F>
LOSSGATE_HOST_DEVICE inline F weighted_by(const ImportanceWeight<F>& weight, F y, KlKind kind,
                                          F x) {
  using std::exp;
  if (y != y) return y;
  if (is_infinite(y)) {
    const F size = weighted_by_large(weight, kind, x);
    return y < F(0) ? -size : size;
  }
  if (!is_infinite(weight.value)) return scaled(y, weight.value);
  const F root = exp(F(0.5) * weight.log_value);
  return scaled(scaled(y, root), root);
}

/// Schulman's estimators of KL(policy || reference): k1 = -x, k2 = x^2/2, k3 = expm1(x) - x, with
/// x = clamp(ref_log_prob - log_prob).
template <class F>
LOSSGATE_HOST_DEVICE inline KlTerm<F> kl_term(F log_prob, F ref_log_prob,
                                              const ImportanceWeight<F>& weight,
                                              const KlOptions<F>& options) {
  constexpr F infinity = std::numeric_limits<F>::infinity();
  const F difference = ref_log_prob - log_prob;
  const F x = clamped(difference, options.input);
  const PlainKl<F> plain = plain_kl(options.kind, x);
  KlTerm<F> kl{plain.value, plain.slope, F(0), F(0)};
  if (options.weighted) {
    // A weight of exactly 0 says that the policy cannot take this token any more.
    if (weight.log_value == -infinity) {
      const F none = ref_log_prob != ref_log_prob ? ref_log_prob : F(0);
      return {none, none, F(0), F(0)};
    }
    kl.value = weighted_by(weight, plain.value, options.kind, x);
    kl.slope = weighted_by(weight, plain.slope, options.kind, x);
    if (!is_infinite(plain.value) && !is_infinite(weight.value)) {
      kl.weight_slope = plain.value;
    } else if (weight.slope != F(0)) {
      kl.log_weight_slope = kl.value;
    }
  }
  if (!passes(difference, options.input)) kl.slope = F(0);
  if (!passes(kl.value, options.output)) {
    return {clamped(kl.value, options.output), F(0), F(0), F(0)};
  }
  return kl;
}

}  // namespace lossgate::impl
