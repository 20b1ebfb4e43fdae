// SPDX-License-Identifier: Apache-2.0
#include "properties/agreement.h"
#include "properties/checks.h"
#include "properties/side_effects.h"

namespace lossgate::properties {

/// On the whole case, whether it is answered or refused, and where it is called once for each
/// micro-batch.
Outcome inputs_not_mutated(Evaluation& evaluation) {
  const bool is_asked =
      !evaluation.study().refusal() || evaluation.implementation().contract.refuses_invalid;
  if (is_asked) {
    if (auto violation = side_effect(evaluation.actual())) return violated(*violation);
  }
  if (auto outcome = unusable(evaluation)) return *outcome;
  if (!evaluation.study().transformed(kSplit)) return held();
  auto violation = side_effect(evaluation.actual(kSplit));
  return violation ? violated(*violation) : held();
}

}  // namespace lossgate::properties
