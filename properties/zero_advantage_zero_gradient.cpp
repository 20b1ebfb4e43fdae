// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/checks.h"
#include "properties/zero_upstream.h"

namespace lossgate::properties {

/// Advantage 0 annihilates whatever it multiplies, an overflowing ratio included (C2).
Outcome zero_advantage_zero_gradient(Evaluation& evaluation) {
  if (auto outcome = unusable_or_nan(evaluation)) return *outcome;
  if (evaluation.study().signature().advantage.empty()) return vacuous("does not apply");
  CaseStudy* study = evaluation.study().derived(kZeroAdvantage);
  if (!study || study->refusal()) return vacuous("no trigger");
  const LossResult& actual = evaluation.actual(kZeroAdvantage);
  if (auto violation = malformed(*study, actual)) return violated(*violation);
  std::set<OutputEntry> silenced;
  if (!all_finite(actual)) silenced = nan_excused(*study, evaluation.arithmetic());
  std::optional<Violation> violation;
  bool asked = false;
  study->for_each_expected(evaluation.arithmetic(), false,
                           [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
                             const OutputInfo& output = study->outputs()[o];
                             if (output.kind != OutputKind::gradient || !expected.is_exact_zero())
                               return;
                             asked = true;
                             const double value = actual.find(output.name)->at(i);
                             if (violation || value == 0.0) return;
                             if (std::isnan(value) && silenced.contains({o, i})) return;
                             violation =
                                 Violation{.place = place_of(*study, output, i),
                                           .actual = value,
                                           .expected = 0.0L,
                                           .error_ratio = HUGE_VAL,
                                           .detail = "all advantages and coefficients are 0",
                                           .cause = "gradient without an advantage"};
                           });
  if (!violation) return asked ? held() : vacuous("no trigger");
  if (!std::isfinite(violation->actual)) {
    violation->cause = cause_of_no_number(evaluation, *study, "zero times infinity");
  }
  return violated(*violation);
}

}  // namespace lossgate::properties
