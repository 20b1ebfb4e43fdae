// SPDX-License-Identifier: Apache-2.0
#include "properties/symptoms.h"

#include <algorithm>

namespace lossgate::properties {
namespace {

void add(std::vector<std::string>& symptoms, const Property& property, const Violation& violation) {
  std::string symptom =
      property.name + "|" + violation.cause + "|" + kind_of_place(violation.place);
  if (std::ranges::find(symptoms, symptom) == symptoms.end()) {
    symptoms.push_back(std::move(symptom));
  }
}

/// Whether a transformed case is finite and the formula in its own right: if not, it was not the
/// transform that made the answer wrong.
void add_of_itself(std::vector<std::string>& symptoms, CaseStudy& study,
                   const impl::Implementation& implementation) {
  if (implementation.unsupported && implementation.unsupported(study.split())) return;
  if (study.whole().grad_mode != GradMode::all) return;  // what nobody asks for is no dead signal
  Evaluation evaluation(study, implementation);
  for (const Property& property : catalog()) {
    const bool basic =
        property.precedence == Precedence::finite || property.precedence == Precedence::formula;
    if (!basic) continue;
    const Outcome outcome = property.check(evaluation);
    if (outcome.violation) add(symptoms, property, *outcome.violation);
  }
}

}  // namespace

std::string kind_of_place(const Place& place) {
  return place.output + (place.sequence < 0 ? "" : place.valid ? "@valid" : "@masked");
}

std::vector<std::string> symptoms_on(CaseStudy& study, const impl::Implementation& implementation,
                                     const std::vector<const Property*>& properties) {
  std::vector<std::string> symptoms;
  Evaluation evaluation(study, implementation);
  evaluation.tells_bias = false;
  const std::vector<Outcome> outcomes = check_all(evaluation, properties, false);
  for (std::size_t i = 0; i < properties.size(); ++i) {
    if (!outcomes[i].violation) continue;
    add(symptoms, *properties[i], *outcomes[i].violation);
    for (const Transform* transform : properties[i]->transforms) {
      CaseStudy* derived = study.derived(*transform);
      if (derived && !derived->refusal()) add_of_itself(symptoms, *derived, implementation);
    }
  }
  return symptoms;
}

}  // namespace lossgate::properties
