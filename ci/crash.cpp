// SPDX-License-Identifier: Apache-2.0
#include "ci/crash.h"

#include <exception>
#include <string_view>

#include "ci/findings.h"
#include "corpora/case_id.h"
#include "fuzz/minimise.h"
#include "properties/behind_mask.h"
#include "reference/spec/contract.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Property;

/// What may be spent on the case of a finding: less than a campaign that is over waits for it.
constexpr fuzz::Effort kEffort = {.tries = 500, .time = std::chrono::seconds(6)};

constexpr std::string_view kProperty = "does_not_crash";

}  // namespace

Crash::Crash(const reference::Loss& loss, const impl::Implementation& subject,
             std::vector<const Property*> asked, const Case& c, const ImplementationThrew& met,
             bool at_once)
    : loss_(&loss),
      subject_(&subject),
      asked_(std::move(asked)),
      how_(met.what()),
      kind_(kind_of(CaseStudy(loss, c), met)),
      at_once_(at_once),
      keeps_to_contract_(keeps_to_contract(loss.signature, c)) {}

Crash::Kind Crash::kind_of(const CaseStudy& study, const ImplementationThrew& met) {
  return {.cause = cause_of_failure(met.what()),
          .refused = study.refusal().has_value(),
          .anything_counts = study.refusal() || properties::anything_counts(study)};
}

std::optional<Crash> Crash::on(const reference::Loss& loss, const impl::Implementation& subject,
                               std::vector<const Property*> asked, const Case& c) {
  if (subject.unsupported(c)) return std::nullopt;
  CaseStudy study(loss, c);
  Evaluation evaluation(study, subject);
  try {
    evaluation.actual();
    check_all(evaluation, asked, true);
  } catch (const ImplementationWornOut&) {
  } catch (const ImplementationThrew& met) {
    if (met.property != kProperty) return std::nullopt;
    return Crash(loss, subject, std::move(asked), c, met, !evaluation.has_answered());
  }
  return std::nullopt;
}

std::optional<std::string> Crash::seen_on(const Case& c) const {
  if (keeps_to_contract_ && !keeps_to_contract(loss_->signature, c)) return std::nullopt;
  try {
    if (subject_->unsupported(c)) return std::nullopt;
    CaseStudy study(*loss_, c);
    Evaluation evaluation(study, *subject_);
    try {
      evaluation.actual();
      if (!at_once_) check_all(evaluation, asked_, true);
    } catch (const ImplementationWornOut&) {
    } catch (const ImplementationThrew& met) {
      if (met.property == kProperty && kind_of(study, met) == kind_) return met.what();
    }
  } catch (const std::exception&) {  // what is no case of the loss, or a subject that is gone
  }
  return std::nullopt;
}

std::optional<SimpleCrash> simplest(const Crash& crash, const LossSignature& signature,
                                    const Case& c, impl::Session* session) {
  const auto worn = session ? session->wear() : impl::Session::Wear{};
  std::string how;
  const auto same = [&](const Case& simpler) {
    const std::optional<std::string> seen = crash.seen_on(simpler);
    if (seen) how = *seen;
    return seen.has_value();
  };
  Case simple = fuzz::minimise(signature, c, same, kEffort).c;
  const std::string id = corpora::case_id(c);
  // Whoever ends now and then is not at fault on this case.
  const bool stands = corpora::case_id(simple) != id && same(simple);
  if (session) session->forgive(worn);
  if (!stands) return std::nullopt;
  // What was said of the case is not so of what is left of it.
  simple.provenance = {};
  simple.provenance.story = "made simple from case " + id;
  return SimpleCrash{.c = std::move(simple), .how = how};
}

}  // namespace lossgate::ci
