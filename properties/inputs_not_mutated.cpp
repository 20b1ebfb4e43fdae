// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

/// On the whole case and where it is called once for each micro-batch.
Outcome inputs_not_mutated(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  const bool splits = evaluation.study().transformed(kSplit) != nullptr;
  for (const LossResult* actual :
       {&evaluation.actual(), splits ? &evaluation.actual(kSplit) : nullptr}) {
    if (!actual || actual->mutated.empty()) continue;
    return violated({.place = {.output = actual->mutated.front()},
                     .error_ratio = HUGE_VAL,
                     .detail = "the call changed its input " + actual->mutated.front(),
                     .cause = "input overwritten"});
  }
  return held();
}

}  // namespace lossgate::properties
