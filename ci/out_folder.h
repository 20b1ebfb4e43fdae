// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "report/run_record.h"

namespace lossgate::ci {

/// Makes the folder, tries that a record can be written there, and removes what an earlier run
/// left. Throws MachineError, before a run is spent in vain.
void prepare_out(const std::filesystem::path& folder);

/// Writes the cases of the findings, run.json and junit.xml. Throws MachineError.
void write_out(const std::filesystem::path& folder, report::RunRecord& record);

}  // namespace lossgate::ci
