// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/page/page.h"

/// The parts of a page, each a piece of HTML that is empty where the record has nothing for it.
namespace lossgate::report {

/// The error ratio beyond which a comparison is violated (rule B4).
inline constexpr double kMostAllowed = 2.0;

std::string verdict_part(const PageSource& source);     ///< the first screen
std::string board_part(const RunRecord& record);        ///< implementation x property
std::string findings_part(const PageSource& source);    ///< one card each
std::string releases_part(const PageSource& source);    ///< runs side by side
std::string kills_part(const RunRecord& record);        ///< the faulty variants
std::string ratios_part(const RunRecord& record);       ///< error ratios by loss and dtype
std::string splits_part(const RunRecord& record);       ///< how far splits move the loss
std::string coverage_part(const RunRecord& record);     ///< which hostile values met which losses
std::string campaign_part(const RunRecord& record);     ///< cases, features, findings over time
std::string benchmarks_part(const PageSource& source);  ///< measured beside the run
std::string run_part(const RunRecord& record);          ///< request, environment, regressions, time

/// The findings in the order of their cards: red ones first, what nobody has to look at last.
std::vector<const RecordedFinding*> cards(const RunRecord& record);

/// Findings of the last run that the run before it lacks; empty where there is none before.
std::vector<std::string> fresh_fingerprints(const PageSource& source);

/// The case of a finding as tables, one per field: values shaded by magnitude, masked positions
/// hatched, the place of the violation marked.
std::string drawing(const StoredCase& stored, const RecordedFinding& finding);

/// The columns in which splits are counted, from the most that is lost to the most that is added,
/// and the splits of a row in each.
std::vector<std::string> split_decades();
std::vector<std::int64_t> split_counts(const SplitErrors& row);

/// What the script draws, sorts and filters by, as JSON that may stand in a script element.
std::string page_data(const PageSource& source);

/// A heading with a link to itself.
std::string heading(const std::string& id, const std::string& title);

}  // namespace lossgate::report
