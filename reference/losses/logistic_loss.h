// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/monotonic.h"
#include "reference/products.h"

namespace lossgate::reference {

/// log(1 + exp(x))
template <class S>
S softplus(const S& x) {
  return monotonic(
      []<class T>(const T& of) {
        return choose(
            value_of(of) > 0, [&] { return T(of + log1p(exp(-of))); },
            [&] { return T(log1p(exp(of))); });
      },
      x);
}

/// Either, where x is so large that PyTorch's softplus is linear: above 20
/// (https://docs.pytorch.org/docs/stable/generated/torch.nn.Softplus.html).
template <class S>
S or_linear(const S& smooth, const S& linear, const S& x) {
  constexpr double kMayBeLinear = 19.0;  // rounding decides at 20
  return choose(
      value_of(x) > kMayBeLinear, [&] { return either(smooth, linear); }, [&] { return smooth; });
}

/// -log sigmoid(-x), or x where that is large, and its slope.
template <class S>
S logistic_loss(const S& x) {
  return or_linear(softplus(x), x, x);
}
template <class S>
S logistic(const S& x) {
  return or_linear(sigmoid(x), selected<S>(1.0), x);
}

/// The same by a log_softmax of -x and 0, whose normaliser, 1 and an exp, rounds at 1.
template <class S>
S logistic_loss_of_two_classes(const S& x) {
  return monotonic(
      []<class T>(const T& of) {
        const T beyond = log(constant<T>(1.0L) + exp(value_of(of) > 0 ? T(-of) : of));
        return value_of(of) > 0 ? T(beyond + of) : beyond;
      },
      x);
}

}  // namespace lossgate::reference
