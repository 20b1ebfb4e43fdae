// SPDX-License-Identifier: Apache-2.0
#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

Outcome determinism(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  if (!evaluation.implementation().contract.deterministic) return skipped("contract");
  evaluation.study().transformed(kRepeated);
  const LossResult& again = evaluation.actual(kRepeated);
  auto violation = malformed(evaluation.study(), again);
  if (!violation) violation = first_difference(evaluation.study(), evaluation.actual(), again);
  if (!violation) return held();
  violation->detail = "the same call gave other bits";
  violation->cause = "order of operations varies";
  return violated(*violation);
}

}  // namespace lossgate::properties
