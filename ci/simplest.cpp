// SPDX-License-Identifier: Apache-2.0
#include "ci/simplest.h"

#include "corpora/case_id.h"
#include "fuzz/minimise.h"
#include "properties/diagnosis.h"
#include "properties/symptoms.h"

namespace lossgate::ci {
namespace {

/// What may be spent to make the case of a finding simple: it is a service, not the verdict.
constexpr fuzz::Effort kEffort = {.tries = 500, .time = std::chrono::seconds(5)};

}  // namespace

std::optional<Simplest> simplest(properties::Finding& finding, const reference::Loss& loss,
                                 const impl::Implementation& subject,
                                 const properties::Property& property, const Case& c,
                                 const std::vector<const properties::Property*>& asked) {
  const auto failure = fuzz::Failure::on(loss, subject, property, c);
  if (!failure) return std::nullopt;  // it takes a sibling, or is not the same again
  Simplest simple{.c = fuzz::minimise(*failure, c, kEffort).c, .shows = {}};
  // What was said of the case is not so of what is left of it.
  if (const std::string id = corpora::case_id(c); corpora::case_id(simple.c) != id) {
    simple.c.provenance = {};
    simple.c.provenance.story = "made simple from case " + id;
  }
  properties::CaseStudy study(loss, simple.c);
  properties::Evaluation evaluation(study, subject);
  const properties::Outcome outcome = property.check(evaluation);
  if (!outcome.violation) return std::nullopt;
  finding.violation = *outcome.violation;
  finding.reach = reach_of(study, subject, property, finding.violation);
  finding.diagnosis = properties::diagnose(study, subject, property, finding.violation);
  simple.shows = properties::symptoms_on(study, subject, asked);
  return simple;
}

}  // namespace lossgate::ci
