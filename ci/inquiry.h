// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ci/tasks.h"
#include "ci/variant.h"

namespace lossgate::ci {

/// Asks implementations about cases and enters what they say into a record. A violation becomes a
/// finding, named, weighed and with the simplest case that shows it.
class Inquiry {
 public:
  /// A finding like one in `shown` is only counted. `announce` hears whenever one is asked.
  Inquiry(const Plan& plan, Shown& shown, BenignCases& benign, const Announce& announce)
      : plan_(plan), shown_(shown), benign_(benign), announce_(announce) {}

  /// Hears of a finding that is new before it is looked into: that takes dozens of calls and some
  /// starts of an interpreter, which may be more time than there is.
  std::function<void(const report::RecordedFinding&)> on_met;

  /// Told of the outcomes, those of the plan's properties in their order.
  using Heard =
      std::function<void(properties::Evaluation&, const std::vector<properties::Outcome>&)>;

  /// What the subject (ci/variant.h: guarded) says of the case.
  void ask(properties::CaseStudy& study, const impl::Implementation& subject,
           const PlannedCase& planned, std::int64_t ordinal, const Heard& heard = nullptr);

  /// Counts a case, and what of the input space it shows.
  void count(const PlannedCase& planned);

  report::RunRecord& record() { return record_; }
  report::RunRecord take();  ///< what has been entered since the last time

  /// Whether a brought subject crashed or hung so often that nothing asks it any more.
  bool worn_out() const { return worn_out_; }

 private:
  /// The plan's properties that are asked of the case.
  std::vector<const properties::Property*> asked_of(const PlannedCase& planned) const;
  /// What they say; of `properties` those are left of which a long case leaves an answer.
  static std::vector<properties::Outcome> answers(
      properties::Evaluation& evaluation, const PlannedCase& planned,
      std::vector<const properties::Property*>& properties);
  void skip(const impl::Implementation& subject, const PlannedCase& planned, std::int64_t ordinal,
            const properties::Outcome& outcome);
  void enter(properties::CaseStudy& study, const impl::Implementation& subject,
             const PlannedCase& planned, std::int64_t ordinal, const properties::Property& property,
             const properties::Outcome& outcome);
  /// With its cause, its grade and the simplest case that shows it: dozens of calls.
  report::RecordedFinding explained(properties::CaseStudy& study,
                                    const impl::Implementation& subject, const PlannedCase& planned,
                                    std::int64_t ordinal, const properties::Property& property,
                                    const properties::Outcome& outcome);
  /// A call that failed; of a crash that was not met before with the simplest case that shows it.
  void enter_failure(const impl::Implementation& subject, const PlannedCase& planned,
                     std::int64_t ordinal, const ImplementationThrew& met, bool at_once);
  void count_splits(const impl::Implementation& subject, const PlannedCase& planned,
                    std::int64_t ordinal, const properties::SplitBias& bias);
  /// Of findings alike the most ordinary is kept, and of those the one with the lowest number; no
  /// process meets that after the others.
  bool first_of_its_kind(const properties::Finding& finding);
  /// Whether a violation says no more than that the subject's formula is another (rule E7).
  bool another_formula(const impl::Implementation& subject, const PlannedCase& planned,
                       const properties::Property& property, const properties::Outcome& outcome);
  /// Of a brought subject: whether the case of a finding that may need earlier calls fails in a new
  /// process, too. Where it holds there, that is the finding's cause, and the case says so.
  void ask_in_new_process(properties::Finding& finding, const impl::Implementation& subject,
                          const properties::Property& property, PlannedCase& shown);
  report::Cell& cell(const impl::Implementation& subject, const PlannedCase& planned,
                     const properties::Property& property);
  void time(const impl::Implementation& subject, const PlannedCase& planned, int calls,
            std::chrono::steady_clock::time_point start);

  const Plan& plan_;
  Shown& shown_;
  BenignCases& benign_;
  const Announce& announce_;
  report::RunRecord record_;
  bool worn_out_ = false;
  std::int64_t ordinal_ = 0;  ///< of the case that is being asked
  bool slow_ = false;  ///< each call on the case that is being asked, or all until one failed
  std::map<std::string, int> findings_;
};

}  // namespace lossgate::ci
