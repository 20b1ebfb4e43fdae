// SPDX-License-Identifier: Apache-2.0
#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

Outcome padding_invariance(Evaluation& evaluation) {
  Outcome outcome = compare_transformed(evaluation, kPadded);
  if (outcome.violation && outcome.violation->detail.empty()) {
    const bool row =
        allows_empty_rows(evaluation.study().signature(), evaluation.study().whole().spec);
    outcome.violation->detail =
        row ? "masked columns and a masked row were added" : "masked columns were added";
    outcome.violation->cause = "padding counted";
  }
  return outcome;
}

}  // namespace lossgate::properties
