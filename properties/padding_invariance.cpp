// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

/// What is added holds zeros: where there is no number without the row that is added, either, it
/// comes of what a column's zeros make, else of the row's own count.
const char* cause_of(Evaluation& evaluation, const Violation& violation) {
  if (std::isfinite(violation.actual)) return "padding counted";
  const Transformed& padded = *evaluation.study().transformed(kPadded);
  const Case columns = batch_of(evaluation.signature(), padded.c, padded.row_of);
  return all_finite(evaluation.call(columns)) ? "empty divisor" : "non-finite value behind a mask";
}

}  // namespace

Outcome padding_invariance(Evaluation& evaluation) {
  Outcome outcome = compare_transformed(evaluation, kPadded);
  if (outcome.violation && outcome.violation->detail.empty()) {
    const bool row =
        allows_empty_rows(evaluation.study().signature(), evaluation.study().whole().spec);
    outcome.violation->detail =
        row ? "masked columns and a masked row were added" : "masked columns were added";
    outcome.violation->cause = cause_of(evaluation, *outcome.violation);
  }
  return outcome;
}

}  // namespace lossgate::properties
