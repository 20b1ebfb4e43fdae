// SPDX-License-Identifier: Apache-2.0
#include "ci/inquiry.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "ci/crash.h"
#include "ci/earlier_calls.h"
#include "ci/findings.h"
#include "ci/simplest.h"
#include "ci/traits.h"
#include "ci/variant.h"
#include "corpora/case_id.h"
#include "properties/another_formula.h"
#include "properties/diagnosis.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Outcome;
using properties::Property;

/// Findings named of one kind of violation in one task; each costs some evaluations. All violations
/// are counted.
constexpr int kFindingsPerKind = 4;

/// Seconds of a call from which on nothing is asked only to explain.
constexpr double kSlowCall = 2.0;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Why a long case says nothing: memory is the machine's.
std::optional<std::string> beyond_memory(const PlannedCase& planned, Evaluation& evaluation) {
  const auto& refusal = evaluation.actual().refusal;
  if (!planned.long_axis || !refusal) return std::nullopt;
  for (const char* word :
       {"MemoryError", "not enough memory", "out of memory", "allocate memory", "std::bad_alloc"}) {
    if (refusal->message.find(word) != std::string::npos) return refusal->message;
  }
  return std::nullopt;
}

/// The conversation with the brought subject that is asked; null where it is none.
impl::Session* session_of(const Plan& plan, const PlannedCase& planned) {
  for (const auto& brought : plan.selection().brought) {
    if (&brought->implementation == planned.only) return brought->session.get();
  }
  return nullptr;
}

/// Why the implementation cannot be asked, where only the call can tell.
std::optional<std::string> not_computed(Evaluation& evaluation) {
  if (evaluation.study().refusal()) return std::nullopt;
  const auto& refusal = evaluation.actual().refusal;
  if (!refusal || refusal->argument != impl::kNotComputed) return std::nullopt;
  return refusal->message;
}

}  // namespace

void Inquiry::ask(CaseStudy& study, const impl::Implementation& subject, const PlannedCase& planned,
                  std::int64_t ordinal, const Heard& heard) {
  if (planned.outside_contract) {
    skip(subject, planned, ordinal, properties::skipped(report::kOutsideContract));
    return;
  }
  if (const auto reason = subject.unsupported(planned.c)) {
    skip(subject, planned, ordinal, properties::skipped("unsupported: " + *reason));
    return;
  }
  ordinal_ = ordinal;
  announce_(ordinal, subject.name);
  const auto start = std::chrono::steady_clock::now();
  int calls = 0;
  Evaluation evaluation(study, subject);
  try {
    if (const auto reason = not_computed(evaluation)) {
      skip(subject, planned, ordinal, properties::skipped("unsupported: " + *reason));
      return;
    }
    if (const auto reason = beyond_memory(planned, evaluation)) {
      skip(subject, planned, ordinal, properties::skipped("long case: " + *reason));
      return;
    }
    auto properties = asked_of(planned);
    const auto outcomes = answers(evaluation, planned, properties);
    calls = evaluation.calls();
    slow_ = planned.long_axis && seconds_since(start) > kSlowCall * std::max(calls, 1);
    if (heard) heard(evaluation, outcomes);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Property& property = *properties[i];
      const bool moot = property.precedence != properties::Precedence::formula &&
                        another_formula(subject, planned, property, outcomes[i]);
      enter(study, subject, planned, ordinal, property,
            moot ? properties::skipped("another formula") : outcomes[i]);
    }
  } catch (const ImplementationWornOut& error) {
    worn_out_ = true;
    skip(subject, planned, ordinal, properties::skipped(error.what()));
  } catch (const ImplementationThrew& error) {
    slow_ = seconds_since(start) > kSlowCall;
    enter_failure(subject, planned, ordinal, error, !evaluation.has_answered());
  }
  time(subject, planned, calls, start);
}

void Inquiry::count(const PlannedCase& planned) {
  const LossSignature& signature = planned.loss->signature;
  for (const Trait& trait : traits_of(signature, planned.c)) {
    cover(record_, signature.id, trait.name, trait.shown);
  }
  record_.cases_run += 1;
}

std::vector<const Property*> Inquiry::asked_of(const PlannedCase& planned) const {
  std::vector<const Property*> asked = plan_.selection().properties;
  std::erase_if(asked, [&](const Property* p) { return !is_asked(*p, planned); });
  return asked;
}

std::vector<Outcome> Inquiry::answers(Evaluation& evaluation, const PlannedCase& planned,
                                      std::vector<const Property*>& properties) {
  try {
    return check_all(evaluation, properties, true);
  } catch (const ImplementationThrew& error) {
    const bool slow = planned.long_axis && std::string_view(error.property) == "does_not_hang";
    if (!slow || !evaluation.has_answered()) throw;
    // What was answered before a call took too long still counts.
    std::erase_if(properties, [](const Property* p) {
      return p->precedence != properties::Precedence::finite &&
             p->precedence != properties::Precedence::formula;
    });
    return check_all(evaluation, properties, true);
  }
}

void Inquiry::skip(const impl::Implementation& subject, const PlannedCase& planned,
                   std::int64_t ordinal, const Outcome& outcome) {
  for (const Property* property : asked_of(planned)) {
    tally(cell(subject, planned, *property), outcome, ordinal);
  }
}

void Inquiry::enter(CaseStudy& study, const impl::Implementation& subject,
                    const PlannedCase& planned, std::int64_t ordinal, const Property& property,
                    const Outcome& outcome) {
  report::Cell& row = cell(subject, planned, property);
  tally(row, outcome, ordinal);
  if (row.worst_ordinal == ordinal) row.worst_case = corpora::case_id(planned.c);
  if (!outcome.violation) return;
  const properties::Violation& violation = *outcome.violation;
  count_splits(subject, planned, ordinal, violation.split_bias);
  const std::string kind = subject.name + "|" + property.name + "|" + violation.cause + "|" +
                           violation.place.output + (violation.place.valid ? "|valid" : "|masked");
  if (++findings_[kind] > kFindingsPerKind) return;
  try {
    add_finding(record_, explained(study, subject, planned, ordinal, property, outcome));
  } catch (const ImplementationThrew&) {  // on another case: what was found stands without
    properties::Finding finding = bare_finding(study, subject, property, violation);
    if (planned.benign) finding.grade = properties::Grade::ordinary;
    add_finding(record_, plan_.options().causes
                             ? recorded(finding, subject, planned, ordinal)
                             : recorded_without_cause(finding, subject, planned, ordinal));
  }
}

report::RecordedFinding Inquiry::explained(CaseStudy& study, const impl::Implementation& subject,
                                           const PlannedCase& planned, std::int64_t ordinal,
                                           const Property& property, const Outcome& outcome) {
  const properties::Violation& violation = *outcome.violation;
  const bool benign =
      planned.benign || benign_.show(*planned.loss, subject, property, planned.c, violation.cause);
  properties::Finding finding = name_finding(study, subject, property, violation, benign);
  const bool another = another_formula(subject, planned, property, outcome);
  if (another) name_another_formula(finding, planned.c.spec.reduction);
  if (!first_of_its_kind(finding)) return counted(finding, ordinal);
  if (!plan_.options().causes) return recorded_without_cause(finding, subject, planned, ordinal);
  if (on_met) on_met(recorded_as_met(finding, subject, planned, ordinal));
  PlannedCase shown = planned;
  std::optional<Simplest> simple;
  if (slow_) {  // dozens of calls would look like a hang
    finding.diagnosis = {.cause = violation.cause, .confidence = 0.0, .because = ""};
  } else if ((simple = simplest(finding, *planned.loss, subject, property, planned.c,
                                asked_of(planned)))) {
    // What became of a stored case is another one, with nobody's story.
    if (corpora::case_id(simple->c) != corpora::case_id(planned.c)) shown.file.clear();
    shown.c = std::move(simple->c);
  } else {
    finding.diagnosis = properties::diagnose(study, subject, property, violation);
  }
  if (another) name_another_formula(finding, planned.c.spec.reduction);
  // Another formula was shown in a new process already.
  if (!slow_ && !another) ask_in_new_process(finding, subject, property, shown);
  report::RecordedFinding entry = recorded(finding, subject, shown, ordinal);
  if (simple) entry.shows = std::move(simple->shows);
  if (slow_) entry.no_experiment = "each call takes seconds";
  return entry;
}

void Inquiry::enter_failure(const impl::Implementation& subject, const PlannedCase& planned,
                            std::int64_t ordinal, const ImplementationThrew& met, bool at_once) {
  const std::string property = met.property, how = met.what();
  const auto is_first = [&] {
    const auto kind = failure_fingerprint(subject.loss, subject.name, property, how);
    return shown_.try_emplace(kind, properties::Grade::ordinary).second;
  };
  const bool is_crash = property == "does_not_crash" && !fails_for_length(planned, property, how);
  std::optional<SimpleCrash> simple;
  if (is_crash && !slow_ && plan_.options().causes && is_first()) {
    if (on_met) on_met(recorded_failure(as_met(planned), ordinal, subject, property, how));
    const Crash crash(*planned.loss, subject, asked_of(planned), planned.c, met, at_once);
    simple = simplest(crash, planned.loss->signature, planned.c, session_of(plan_, planned));
  }
  if (!simple) {
    const bool left_as_met = is_crash && !plan_.options().causes;
    return add_failure(record_, left_as_met ? as_met(planned) : planned, ordinal, subject, property,
                       how);
  }
  PlannedCase shown = planned;
  shown.file.clear();
  shown.c = std::move(simple->c);
  add_failure(record_, shown, ordinal, subject, property, simple->how);
}

void Inquiry::count_splits(const impl::Implementation& subject, const PlannedCase& planned,
                           std::int64_t ordinal, const properties::SplitBias& bias) {
  if (bias.off_by.empty()) return;
  report::SplitErrors& row = report::count_splits(record_, subject.loss, subject.name,
                                                  std::string(name(planned.dtype)), bias, ordinal);
  if (row.worst_ordinal == ordinal) row.worst_case = corpora::case_id(planned.c);
}

bool Inquiry::first_of_its_kind(const properties::Finding& finding) {
  const auto [known, fresh] = shown_.try_emplace(finding.fingerprint, finding.grade);
  if (!fresh && finding.grade >= known->second) return false;
  known->second = finding.grade;
  return true;
}

bool Inquiry::another_formula(const impl::Implementation& subject, const PlannedCase& planned,
                              const Property& property, const Outcome& outcome) {
  if (!outcome.violation) return false;
  return benign_.another_formula(*planned.loss, subject, property, *outcome.violation,
                                 [&] { announce_(ordinal_, subject.name); });
}

void Inquiry::ask_in_new_process(properties::Finding& finding, const impl::Implementation& subject,
                                 const Property& property, PlannedCase& shown) {
  const bool may = may_need_earlier_calls(property, finding.diagnosis);
  if (shown.loss->advice || !may) return;
  try {
    const auto start = [&] {
      return in_new_process(plan_.selection(), subject, [&] { announce_(ordinal_, subject.name); });
    };
    if (!start()) return;  // nothing runs before it is asked
    auto state = needs_earlier_calls(
        *shown.loss, subject, [&] { return start().value(); }, property, shown.c,
        finding.violation.cause);
    if (!state) return;
    finding.diagnosis = std::move(state->diagnosis);
    if (!state->holds_alone || !shown.file.empty()) return;
    std::string& story = shown.c.provenance.story;
    story += (story.empty() ? "" : "; ") + std::string("it holds where nothing was asked before");
  } catch (const ImplementationThrew&) {  // what was found stands without
  } catch (const impl::SubjectError&) {
  }
}

report::Cell& Inquiry::cell(const impl::Implementation& subject, const PlannedCase& planned,
                            const Property& property) {
  return report::cell(record_, subject.loss, subject.name, std::string(name(planned.dtype)),
                      property.name);
}

void Inquiry::time(const impl::Implementation& subject, const PlannedCase& planned, int calls,
                   std::chrono::steady_clock::time_point start) {
  report::RunRecord part;
  part.timings.push_back({.loss = subject.loss,
                          .implementation = subject.name,
                          .dtype = std::string(name(planned.dtype)),
                          .cases = 1,
                          .calls = calls,
                          .seconds = seconds_since(start)});
  merge(record_, part);
}

report::RunRecord Inquiry::take() {
  findings_.clear();
  return std::exchange(record_, {});
}

}  // namespace lossgate::ci
