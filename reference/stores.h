// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "reference/spec/arithmetic.h"
#include "reference/tracked.h"

/// What an implementation leaves in a format on the way (rule B1).
namespace lossgate::reference {

namespace tracking {

/// What the stage's format does not hold is as infinite as what the compute format does not: so far
/// beyond this, or 0 where it fits.
inline double beyond(const Store& rule, const Tracked& stored) {
  const double share = most(stored) / rule.largest;
  return share > 1.0 ? product(largest, share) : 0.0;
}

}  // namespace tracking

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
  stored.peak = std::max(stored.peak, tracking::beyond(rule, stored));
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
  if (rule.roundoff == 0.0 || size == 0.0 || is_stored_infinity(whole)) return whole;
  const double lost = product(rule.roundoff, size) + rule.eta;
  Tracked result = whole;
  if (!whole.is_exact_zero()) {
    const double others = (magnitude(whole.v) + whole.half) / size;
    result = finish(whole.v, whole.err + product(others, lost), whole.peak, whole.half);
  }
  const Tracked stored = finish(part.v, part.err + lost, 0.0, part.half);
  result.peak = std::max(result.peak, beyond(rule, stored));
  return result;
}

/// x, of which one summand is such a `whole`: where others cancel it, what was lost of it stays.
template <class S>
S holding_stored(Stage /*stage*/, const S& x, const S& /*whole*/, const S& /*part*/) {
  return x;
}

inline Tracked holding_stored(Stage stage, const Tracked& x, const Tracked& whole,
                              const Tracked& part) {
  if (tracking::current->stage(stage).roundoff == 0.0) return x;
  const Tracked stored = stored_within(stage, whole, part);
  return tracking::finish(x.v, x.err + (stored.err - whole.err), std::max(x.peak, stored.peak),
                          x.half);
}

/// x, the sum of `part()` and another summand, each of which is stored before they are added.
template <class S, class Part>
S stored_apart(Stage /*stage*/, const S& x, Part&& /*part*/) {
  return x;
}

template <class Part>
Tracked stored_apart(Stage stage, const Tracked& x, Part&& part_of) {
  if (tracking::current->stage(stage).roundoff == 0.0) return x;
  const Tracked part = part_of();
  if (tracking::is_stored_infinity(x) || tracking::is_stored_infinity(part)) return x;
  const Tracked other = {x.v - part.v, 0.0, 0.0, x.half};
  return holding_stored(stage, holding_stored(stage, x, part, part), other, other);
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
