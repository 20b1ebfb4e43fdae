// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/scalar.h"
#include "reference/stores.h"

namespace lossgate::reference {

/// A logit over the temperature, stored before it is divided or after (rule B1). A temperature of 1
/// rounds nothing.
template <class S>
S over_temperature(const S& logit, const S& temperature) {
  return store(Stage::logits, value_of(temperature) == 1 ? logit : S(logit / temperature));
}

inline Tracked over_temperature(const Tracked& logit, const Tracked& temperature) {
  if (temperature.v == 1.0L) return store(Stage::logits, logit);
  const Tracked quotient = logit / temperature;
  if (tracking::current->stage(Stage::logits).roundoff == 0.0) return quotient;
  return wider(store(Stage::logits, quotient), store(Stage::logits, logit) / temperature);
}

}  // namespace lossgate::reference
