// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numbers>

#include "reference/products.h"
#include "reference/scalar.h"

/// What a logistic loss of h = a - b loses where it is a log_softmax of two classes, whose logits
/// are a and b, or h and 0, or 0 and -h.
namespace lossgate::reference {

/// What a softmax of h and 0 leads to: infinity less infinity where h overflows upwards, as the
/// largest of both.
template <class S>
S by_softmax_with_zero(const S& result, const S& /*h*/) {
  return result;
}

inline Tracked by_softmax_with_zero(Tracked result, const Tracked& h) {
  if (may_spill(h, true)) result.peak = tracking::kInfinity;
  return result;
}

/// The logarithm of a share, or the share, which are made of a logit and the normaliser: either
/// rounds at its own size, as their difference does, and a share is off by that times itself.
template <class S>
S by_normaliser(const S& result, const S& /*a*/, const S& /*b*/, const S& /*h*/) {
  return result;
}

inline Tracked by_normaliser(Tracked result, const Tracked& a, const Tracked& b, const Tracked& h) {
  using namespace tracking;
  const double larger = std::max({magnitude(a.v), magnitude(b.v), magnitude(h.v)}),
               normaliser = larger + std::numbers::ln2, gap = magnitude(h.v) + std::numbers::ln2;
  // What is infinite there is another matter.
  if (normaliser < kInfinity && gap < kInfinity) result.err += roundoff(normaliser + gap);
  return result;
}

}  // namespace lossgate::reference
