// SPDX-License-Identifier: Apache-2.0
#include "ci/sound.h"

#include <algorithm>
#include <optional>

#include "ci/inquiry.h"
#include "ci/variant.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Outcome;
using properties::Verdict;

bool skipped_by(const Task& task, std::int64_t ordinal, const std::string& implementation) {
  return std::ranges::find(task.skips, Skip{ordinal, implementation}) != task.skips.end();
}

class SoundTask {
 public:
  SoundTask(const Plan& plan, const Task& task, Shown& shown, BenignCases& benign,
            const Announce& announce, const Met& met)
      : plan_(plan), task_(task), announce_(announce), inquiry_(plan, shown, benign, announce) {
    if (met) inquiry_.on_met = [&met](const report::RecordedFinding&) { met(); };
    for (const impl::Implementation* implementation : plan.selection().implementations) {
      const auto before = [this, name = implementation->name] { announce_(ordinal_, name); };
      subjects_.push_back(guarded(*implementation, before));
    }
  }

  report::RunRecord run() {
    for (std::int64_t ordinal = task_.begin; ordinal < task_.end; ++ordinal) {
      ordinal_ = ordinal;
      const PlannedCase planned = plan_.at(ordinal);
      CaseStudy study(*planned.loss, planned.c);
      for (const impl::Implementation& subject : subjects_) {
        if (subject.loss != planned.c.spec.loss) continue;
        if (planned.only && planned.only->name != subject.name) continue;
        const bool skipped = skipped_by(task_, ordinal, subject.name);
        if (!subject.fault && !skipped) inquiry_.ask(study, subject, planned, ordinal);
        expect(study, subject, planned, ordinal);
      }
      inquiry_.count(planned);
    }
    return inquiry_.take();
  }

 private:
  /// A regression says what must be violated on its case.
  void expect(CaseStudy& study, const impl::Implementation& subject, const PlannedCase& planned,
              std::int64_t ordinal) {
    std::optional<Evaluation> evaluation;
    for (const auto& [implementation, property] : planned.expected) {
      if (implementation != subject.name) continue;
      report::Expectation& row = inquiry_.record().expectations.emplace_back();
      row.file = planned.file;
      row.implementation = implementation;
      row.property = property;
      if (const auto reason = subject.unsupported(planned.c)) {
        row.verdict = "unsupported: " + *reason;
        continue;
      }
      if (skipped_by(task_, ordinal, subject.name)) {
        row.verdict = "crashed or hung";
        continue;
      }
      try {
        if (!evaluation) evaluation.emplace(study, subject);
        const Outcome outcome = properties::find_property(property)->check(*evaluation);
        row.verdict = name(outcome.verdict);
        row.met = outcome.verdict == Verdict::violated;
      } catch (const ImplementationThrew& error) {
        row.verdict = error.what();
      }
    }
  }

  const Plan& plan_;
  const Task& task_;
  const Announce& announce_;
  std::int64_t ordinal_ = 0;
  std::vector<impl::Implementation> subjects_;
  Inquiry inquiry_;
};

}  // namespace

report::RunRecord run_sound(const Plan& plan, const Task& task, Shown& shown, BenignCases& benign,
                            const Announce& announce, const Met& met) {
  return SoundTask(plan, task, shown, benign, announce, met).run();
}

}  // namespace lossgate::ci
