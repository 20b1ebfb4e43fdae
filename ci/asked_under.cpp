// SPDX-License-Identifier: Apache-2.0
#include "ci/asked_under.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ci/variant.h"
#include "fuzz/draw_case.h"
#include "fuzz/level_rows.h"
#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/causes.h"
#include "properties/diagnosis.h"
#include "reference/spec/contract.h"
#include "reference/spec/masked.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Property;

bool looks_at_the_case(const Property& property) {
  return property.precedence != properties::Precedence::yields ||
         std::ranges::all_of(property.transforms, [](const properties::Transform* transform) {
           return transform == &properties::kSplit;
         });
}

std::vector<const Property*> asked_properties(Breadth breadth) {
  std::vector<const Property*> list;
  for (const Property& property : properties::catalog()) {
    if (property.tier == properties::Tier::hardening) continue;
    if (breadth == Breadth::all || looks_at_the_case(property)) list.push_back(&property);
  }
  return list;
}

}  // namespace

AskedUnder::AskedUnder(const Brought& brought, const impl::Subject& subject) {
  Brought other = redeclared(brought, subject);
  loss_ = std::move(other.loss);
  implementation_ = guarded(std::move(other.implementation));
}

AskedUnder::AskedUnder(reference::Loss loss, impl::Implementation implementation)
    : loss_(std::move(loss)), implementation_(guarded(implementation)) {}

bool AskedUnder::fails(const Property& property, const Case& c) const {
  Case moved = c;
  fuzz::level_rows(loss_.signature, moved);
  const CaseStudy given(loss_, moved);
  const auto may_not_stand = [](const Field& field, double value) {
    return !field.one_per_sequence && !keeps_to(field.masked, field.quantity, value);
  };
  const Case kept = properties::zeroed_behind_mask(given, moved, may_not_stand).value_or(moved);
  if (!keeps_to_contract(loss_.signature, kept) || implementation_.unsupported(kept)) {
    return false;
  }
  CaseStudy study(loss_, kept);
  Evaluation evaluation(study, implementation_);
  evaluation.tells_bias = false;
  return property.check(evaluation).violation.has_value();
}

std::string Failure::text() const {
  return fmt::format("{} ({} case{}{})", property->name, cases.size(), cases.size() == 1 ? "" : "s",
                     cause.empty() ? "" : ": " + cause);
}

void Failures::hear(const std::optional<properties::Violation>& no_result) {
  answered += !no_result;
  if (no_result && said.empty()) said = no_result->detail;
}

Failure& Failures::add(const properties::Property& property, const std::string& cause,
                       const std::vector<Case>& shown) {
  auto known = std::ranges::find_if(all, [&](const Failure& failure) {
    return failure.property == &property && failure.cause == cause;
  });
  if (known == all.end()) known = all.insert(all.end(), Failure{&property, cause, {}});
  known->cases.insert(known->cases.end(), shown.begin(), shown.end());
  return *known;
}

std::string diagnosed(const AskedUnder& asked, const Failure& failure) {
  CaseStudy study(asked.loss(), failure.cases.front());
  Evaluation evaluation(study, asked.implementation());
  evaluation.tells_bias = false;
  const auto outcome = failure.property->check(evaluation);
  if (!outcome.violation) return failure.cause;
  return diagnose(study, asked.implementation(), *failure.property, *outcome.violation).cause;
}

Already seen_under(AskedUnder other) {
  return [asked = std::move(other)](const Failure& failure) {
    return std::ranges::all_of(failure.cases,
                               [&](const Case& c) { return asked.fails(*failure.property, c); });
  };
}

std::vector<std::string> new_kinds(const AskedUnder& asked, const Failures& found,
                                   const Already& already) {
  Failures told;  // what looked like two kinds may have one cause
  for (const Failure& failure : found.all) {
    if (already(failure)) continue;
    told.add(*failure.property, diagnosed(asked, failure), failure.cases);
  }
  std::vector<std::string> kinds;
  for (const Failure& kind : told.all) kinds.push_back(kind.text());
  return kinds;
}

Case trial_case(const AskedUnder& asked, Dtype dtype, std::uint64_t seed, int index) {
  const auto profile = index < kHostileTrials ? fuzz::Profile::hostile : fuzz::Profile::benign;
  const LossSignature& signature = asked.loss().signature;
  fuzz::Choices choices =
      fuzz::case_choices(seed, signature.id, dtype, profile, static_cast<std::uint64_t>(index));
  return fuzz::draw_case(signature, dtype, profile, choices);
}

bool always_holds(const Brought& brought, const impl::Subject& subject,
                  const properties::Property& property,
                  const std::function<void(const Case&)>& see) {
  const AskedUnder asked(brought, subject);
  for (int i = 0; i < kTrials; ++i) {
    const Case c = trial_case(asked, brought.dtypes.front(), kTrialSeed, i);
    if (asked.fails(property, c)) return false;
    see(c);
  }
  return true;
}

Failures failures(const AskedUnder& asked, Dtype dtype, Progress& progress, std::uint64_t seed,
                  Breadth breadth) {
  const auto properties = asked_properties(breadth);
  Failures found;
  for (int i = 0; i < kTrials; ++i, progress.add_cases(1)) {
    progress.show();
    const Case c = trial_case(asked, dtype, seed, i);
    if (asked.implementation().unsupported(c)) continue;
    CaseStudy study(asked.loss(), c);
    Evaluation evaluation(study, asked.implementation());
    evaluation.tells_bias = false;
    const auto outcomes = check_all(evaluation, properties, true);
    found.cases += 1;
    if (!study.refusal()) found.hear(malformed(study, evaluation.actual()));
    for (std::size_t p = 0; p < properties.size(); ++p) {
      if (!outcomes[p].violation) continue;
      const properties::Violation& violation = *outcomes[p].violation;
      Failure& failure = found.add(*properties[p], violation.cause, {c});
      if (failure.said.empty() && properties::gives_no_result(violation.cause)) {
        failure.said = violation.detail;
      }
    }
  }
  return found;
}

}  // namespace lossgate::ci
