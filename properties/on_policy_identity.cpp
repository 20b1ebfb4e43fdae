// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

/// With policy = old = reference the ratio is exactly 1 and KL exactly 0, so per-token values carry
/// no error but that of their own storage.
Outcome on_policy_identity(Evaluation& evaluation) {
  if (auto outcome = incomparable(evaluation)) return *outcome;
  if (evaluation.study().signature().on_policy.empty()) return vacuous("does not apply");
  CaseStudy* study = evaluation.study().derived(kOnPolicy);
  if (!study || study->refusal()) return vacuous("no trigger");
  const LossResult& actual = evaluation.actual(kOnPolicy);
  if (auto violation = malformed(*study, actual)) return violated(*violation);
  Outcome outcome = compare({.study = *study,
                             .arithmetic = evaluation.arithmetic(),
                             .actual = actual,
                             .exact_values = true});
  if (outcome.violation) {
    outcome.violation->detail = "current, old and reference policy are the same";
    outcome.violation->cause = std::isfinite(outcome.violation->actual)
                                   ? "disagrees with the formula"
                               : outcome.violation->place.valid ? "not finite"
                                                                : "non-finite value behind a mask";
  }
  return outcome;
}

}  // namespace lossgate::properties
