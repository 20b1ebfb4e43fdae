// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/page/page.h"

namespace lossgate::ci {

/// Makes the folder, tries that a record can be written there, and removes what an earlier run
/// left. Throws MachineError, before a run is spent in vain.
void prepare_out(const std::filesystem::path& folder);

/// Throws InputError where a file is in the way of the folder.
void check_out(const std::filesystem::path& folder);

/// Whether a campaign lives there, whose state a gate would replace.
bool holds_campaign(const std::filesystem::path& folder);

/// Throws InputError where a gate left its record, which a campaign would replace by its own.
void refuse_record_of_gate(const std::filesystem::path& folder);

/// Whether one of these folders of cases holds findings that prepare_out would remove.
bool holds_findings_of(const std::filesystem::path& folder,
                       const std::vector<std::string>& corpora);

/// Writes the cases of the findings, run.json and its views. Throws MachineError.
void write_out(const std::filesystem::path& folder, report::RunRecord record);

/// Lets the commands that show findings again name their cases from where this process works, if
/// the folder is below; else from the folder of the record on.
void say_folder(const std::filesystem::path& folder, report::RunRecord& record);

/// What a page calls the run in this folder: the folder's own name, and nothing of where it lies.
std::string run_name(const std::filesystem::path& folder);

/// The cases that the findings of a record name and that lie beside it, of losses in the catalog; a
/// file that is not there, or cannot be read, is none.
std::map<std::string, report::StoredCase> stored_cases(const std::filesystem::path& folder,
                                                       const report::RunRecord& record);

/// Writes report.html, report.sarif, junit.xml and summary.md. Throws MachineError.
void write_views(const std::filesystem::path& folder, const report::PageSource& source);

/// "run/report.html, run/report.sarif, ...".
std::string views_in(const std::filesystem::path& folder);

}  // namespace lossgate::ci
