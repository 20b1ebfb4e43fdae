// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/run_record.h"

namespace lossgate::report {

struct BoardStyle {
  bool colour = false;  ///< a terminal, not a log
  /// Shown in full. Each implementation that has none among them has one in a line; the rest are
  /// counted by implementation.
  std::size_t findings = 10;
  std::string folder;  ///< goes before the case files of repro lines
};

/// The whole record on one or two screens, in plain ASCII: implementations with their worst error
/// ratio and counts of the five verdicts, the kill matrix, the findings, one line of verdict.
std::string board(const RunRecord& record, const BoardStyle& style);

/// What the gate's exit status says: 0 nothing red, 1 red or a faulty implementation survived, 3
/// the run is not whole.
int exit_status(const RunRecord& record);

/// "red: 2 findings, 1 faulty implementation survived".
std::string verdict_line(const RunRecord& record);

}  // namespace lossgate::report
