// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "report/run_record.h"

namespace lossgate::ci {

/// What a case says of a finding of before.
struct SaidAgain {
  std::optional<report::RecordedFinding> finding;  ///< what is found now in its place
  /// Why it is none any more: "held", or that the case is no question now, "skipped: contract".
  /// Empty, without a finding: nothing is known, as where the call fails before.
  std::string mended;
};

/// `answer` is what one case gave, asked of the implementation of the finding.
SaidAgain said_again(const std::string& property, const report::RunRecord& answer);

/// The cells of `answer` in which a finding that is new is counted, and nothing else: what of
/// before fails or holds was counted when it was found.
report::RunRecord cells_with(const report::RecordedFinding& finding,
                             const report::RunRecord& answer);

/// Whether the property is one of the run, such as does_not_crash.
bool is_of_run(const std::string& property);

}  // namespace lossgate::ci
