// SPDX-License-Identifier: Apache-2.0
#include "ci/made_case.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include "properties/agreement.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Violation;

constexpr std::string_view kOfMadeCase[] = {"empty_is_zero", "zero_advantage_zero_gradient",
                                            "on_policy_identity"};

bool same(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

/// Whether this is what the violation was seen on: a property tries several, and one may be wrong
/// at a place where another is right.
bool shows(CaseStudy& made, const Arithmetic& arithmetic, const LossResult& actual,
           const Violation& violation) {
  const bool answers = !malformed(made, actual);
  if (!answers || !violation.has_numbers()) return !answers && !violation.has_numbers();
  return made.any_expected(
      arithmetic, false, [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        const std::string& output = made.outputs()[o].name;
        return output == violation.place.output && i == violation.place.index &&
               expected.v == violation.expected &&
               same(actual.find(output)->at(i), violation.actual);
      });
}

}  // namespace

bool is_of_made_case(const properties::Property& property) {
  return std::ranges::find(kOfMadeCase, property.name) != std::end(kOfMadeCase);
}

std::optional<Case> made_case(const reference::Loss& loss,
                              const impl::Implementation& implementation,
                              const properties::Property& property, const Case& c,
                              const Violation& violation) {
  CaseStudy study(loss, c);
  properties::Evaluation evaluation(study, implementation);
  for (const properties::Transform* transform : property.transforms) {
    CaseStudy* made = study.derived(*transform);
    if (!made || made->refusal()) continue;
    const LossResult& actual = evaluation.actual(*transform);
    if (shows(*made, evaluation.arithmetic(), actual, violation)) return made->whole();
  }
  return std::nullopt;
}

}  // namespace lossgate::ci
