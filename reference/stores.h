// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "reference/spec/arithmetic.h"
#include "reference/tracked.h"

/// What an implementation leaves in a format on the way (rule B1).
namespace lossgate::reference {

/// The result of a stage at which the arithmetic may store (rule B1).
template <class S>
S store(Stage /*stage*/, const S& a) {
  return a;
}

inline Tracked store(Stage stage, const Tracked& a) {
  const Store& rule = tracking::current->stage(stage);
  if (rule.roundoff == 0.0 || a.is_exact_zero() || tracking::is_stored_infinity(a)) return a;
  const double size = tracking::magnitude(a.v) + a.half;
  Tracked stored = tracking::finish(a.v, a.err + tracking::product(rule.roundoff, size) + rule.eta,
                                    a.peak, a.half);
  // What the stage's format does not hold is as infinite as what the compute format does not.
  if (const double beyond = tracking::most(stored) / rule.largest; beyond > 1.0) {
    stored.peak = std::max(stored.peak, tracking::product(tracking::largest, beyond));
  }
  return stored;
}

/// A multiple of `part`, which the arithmetic stores at that stage before other factors meet it: a
/// term on its way into the loss, or on the way back what is handed to it.
template <class S>
S stored_within(Stage /*stage*/, const S& whole, const S& /*part*/) {
  return whole;
}

inline Tracked stored_within(Stage stage, const Tracked& whole, const Tracked& part) {
  using namespace tracking;
  const Store& rule = current->stage(stage);
  const double size = magnitude(part.v) + part.half;
  if (rule.roundoff == 0.0 || size == 0.0) return whole;
  if (whole.is_exact_zero() || is_stored_infinity(whole)) return whole;
  const double others = (magnitude(whole.v) + whole.half) / size;
  const double lost = product(others, product(rule.roundoff, size) + rule.eta);
  return finish(whole.v, whole.err + lost, whole.peak, whole.half);
}

/// What a backward makes of the upstream gradient that it begins with. Where the compute format
/// does not hold that, it is infinite before it meets anything, an exact zero too.
template <class S>
S begun_with(const S& /*upstream*/, const S& result) {
  return result;
}

inline Tracked begun_with(const Tracked& upstream, Tracked result) {
  const double size = tracking::magnitude(upstream.v);
  if (size > tracking::largest) result.peak = std::max(result.peak, size);
  return result;
}

}  // namespace lossgate::reference
