// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "report/run_record.h"

namespace lossgate::report {

/// A finding as a terminal shows it: at most 13 items, each wrapped to a few lines unless somebody
/// copies it, ASCII, no colour. `statement` is the property's sentence; `folder`, where the record
/// lies, goes before the case file of the repro line where it is not empty.
std::string finding_text(const RecordedFinding& finding, std::string_view statement,
                         std::string_view folder);

/// Where rounding decides a branch, as far as the half-width takes what is right from the middle:
/// ", or up to 0.5 from it, as rounding decides"; empty where that is within what is allowed.
std::string branch_text(double half_width, double allowed);

/// What is right at the place: a decimal, or whether it is a number at all, where any is.
std::string expected_text(const RecordedFinding& finding);

/// What the experiment showed that named the cause, and how sure that is; empty where none did.
std::string because_text(const properties::Diagnosis& diagnosis);

/// What usually mends a violation: of its cause where that says more than the property.
std::string_view usual_fix(std::string_view property, std::string_view cause = "");

/// What to call that: "to try" where nothing says that the cause is the one, neither an experiment,
/// which would be some confidence, nor what was seen by itself.
inline constexpr std::string_view kToTry = "to try";
std::string_view fix_label(std::string_view property, std::string_view cause, double confidence);

/// The cause, with the word that no experiment says more, where the fix is one to try.
std::string cause_text(std::string_view property, std::string_view cause, double confidence);

/// The same of a recorded finding, of which the cause says, too, where nobody looked for it.
std::string_view fix_label(const RecordedFinding& finding);
std::string cause_text(const RecordedFinding& finding);

/// One in a line, as a campaign says what it has just met, with its file: "determinism VIOLATED by
/// one (grpo, f32; state between calls): campaign/findings/0123456789abcdef.case".
std::string met_line(const RecordedFinding& finding, std::string_view folder);

/// What became of a finding of before.
std::string mended_line(const Mended& mended);

/// Which stored cases were not asked, and why.
std::string unfit_line(const UnfitCases& unfit);

/// The command that shows the finding again.
std::string repro_line(const RecordedFinding& finding, std::string_view folder);

}  // namespace lossgate::report
