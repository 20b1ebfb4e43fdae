// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

Outcome inputs_not_mutated(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  const LossResult& actual = evaluation.actual();
  if (actual.mutated.empty()) return held();
  return violated({.place = {.output = actual.mutated.front()},
                   .error_ratio = HUGE_VAL,
                   .detail = "the call changed its input " + actual.mutated.front(),
                   .cause = "input overwritten"});
}

}  // namespace lossgate::properties
