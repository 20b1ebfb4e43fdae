// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/scalar.h"
#include "reference/stores.h"

/// Terms of which parts are stored by themselves (rule B1).
namespace lossgate::reference {

/// sum = first + second, where either may be stored at that stage before they are added, the second
/// one as the `part` that its coefficient has not met. A second one that is 0 leaves one part.
template <class S>
S of_stored_parts(Stage /*stage*/, const S& sum, const S& /*first*/, const S& /*second*/,
                  const S& /*part*/) {
  return sum;
}

inline Tracked of_stored_parts(Stage stage, const Tracked& sum, const Tracked& first,
                               const Tracked& second, const Tracked& part) {
  if (second.is_exact_zero() || tracking::from_stored_infinity(first, second)) return sum;
  const Tracked apart = holding_stored(stage, sum, first, first);
  return holding_stored(stage, apart, second, part);
}

}  // namespace lossgate::reference
