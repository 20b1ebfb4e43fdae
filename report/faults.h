// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/run_record.h"

namespace lossgate::report {

/// LOSS/IMPLEMENTATION.
std::string subject_of(const RecordedFinding& finding);

/// Puts those findings of one implementation together of which one's case shows the other as well,
/// that experiments give one cause, or of which numbers that are not finite begin at one line (rule
/// E9). A fault has the cause that experiments give most of its cases, and the name of the finding
/// of which they give it most.
void group_by_fault(RunRecord& record);

/// How many faults the red findings are at least: of each implementation the most that experiments
/// are sure of in one format, and one where they are sure of none. What nobody explained may be any
/// of them, and one mechanism goes by several names in several formats.
std::int64_t least_faults(const RunRecord& record);

/// What is left to do when all parts of a record are merged: their order, the faults, and what
/// contracts relax.
void close_record(RunRecord& record);

}  // namespace lossgate::report
