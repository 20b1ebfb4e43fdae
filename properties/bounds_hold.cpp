// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

/// Ranges that the signature declares for its outputs; a value may leave them by its error at most.
Outcome bounds_hold(Evaluation& evaluation) {
  if (auto outcome = incomparable(evaluation)) return *outcome;
  CaseStudy& study = evaluation.study();
  if (std::ranges::none_of(study.outputs(), [](const OutputInfo& output) {
        return output.kind == OutputKind::value && output.range;
      })) {
    return vacuous("does not apply");
  }
  std::optional<Violation> violation;
  bool asked = false;
  study.for_each_expected(
      evaluation.arithmetic(), false,
      [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        const OutputInfo& output = study.outputs()[o];
        if (output.kind != OutputKind::value || !output.range) return;
        const double actual = evaluation.actual().find(output.name)->at(i);
        if (!std::isfinite(actual) || !std::isfinite(expected.err)) return;
        asked = true;
        const auto [low, high] = *output.range;
        const double slack = largest_accepted(evaluation.arithmetic(), output, expected);
        const double outside = std::max(low - actual, actual - high);
        if (violation || outside <= slack) return;
        violation = Violation{.place = place_of(study, output, i),
                              .actual = actual,
                              .expected = expected.v,
                              .allowed = slack,
                              .error_ratio = outside / slack,
                              .detail = "outside its mathematical range",
                              .cause = "cancellation"};
      },
      CaseStudy::Wanted::values);
  if (violation) return violated(*violation);
  return asked ? held() : vacuous("no trigger");
}

}  // namespace lossgate::properties
