// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

Outcome reference_agreement(Evaluation& evaluation) {
  if (evaluation.study().refusal()) return skipped("the input is to be refused");
  if (empty_by_contract(evaluation)) return skipped("contract");
  if (auto violation = malformed(evaluation.study(), evaluation.actual())) {
    const bool refuses = violation->cause == "legal input refused";
    if (refuses && evaluation.study().nan_at_valid()) return skipped("NaN at a valid position");
    return violated(*violation);
  }
  if (auto outcome = incomparable(evaluation)) return *outcome;
  Outcome outcome = compare_whole(evaluation);
  if (!outcome.violation) return outcome;
  Violation& violation = *outcome.violation;
  const bool dead = violation.actual == 0.0 && violation.place.in_gradient();
  if (dead) {
    violation.detail = "the gradient is 0 where the formula's is not";  // rule C8
    violation.cause = "dead signal";
  } else if (!std::isfinite(violation.actual)) {
    violation.detail = "not finite where the formula is";
    violation.cause = "not finite";
  } else {
    violation.detail = "differs from the formula by more than its arithmetic can";
    violation.cause = "disagrees with the formula";
  }
  return outcome;
}

}  // namespace lossgate::properties
