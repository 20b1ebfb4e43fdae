// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/run_record.h"

namespace lossgate::report {

/// A line for each finding that a waiver or the baseline accepts.
std::vector<std::string> accepted_lines(const RunRecord& record);

/// A waiver or an entry of the baseline that no finding needs, or could.
struct Idle {
  std::string what, name;

  std::string line() const { return what + ": " + name; }
};
std::vector<Idle> idle_entries(const RunRecord& record);

/// What an entry of the baseline is that was not found: of a run of fewer cases than the baseline
/// was made of nobody knows that it is gone.
std::string vanished_text(const RunRecord& record);

}  // namespace lossgate::report
