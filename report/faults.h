// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/run_record.h"

namespace lossgate::report {

/// Puts those findings of one implementation together of which one's case shows the other as well,
/// or that experiments give one cause (rule E9). A fault has the name, and the cause, of the first
/// one with the cause that experiments give most of its cases.
void group_by_fault(RunRecord& record);

/// What is left to do when all parts of a record are merged: their order, the faults, and what
/// contracts relax.
void close_record(RunRecord& record);

}  // namespace lossgate::report
