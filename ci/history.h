// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/features.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// Raised when an older reader would misread the journal of a campaign.
inline constexpr int kJournalVersion = 1;

/// What a campaign has done to one implementation.
struct Spent {
  std::int64_t cases = 0;
  double seconds = 0.0;  ///< of one worker
  std::set<fuzz::Feature> seen;
  std::int64_t long_from = 0;  ///< the first long case that was not answered, -1: all were
};

/// What stands in the folder of a campaign.
struct History {
  std::int64_t damaged = 0;                   ///< lines of the journal that could not be read
  double seconds = 0.0;                       ///< by the clock on the wall
  std::map<std::string, Spent> spent;         ///< by "loss/implementation"
  report::RunRecord findings;                 ///< and those that are mended; nothing else
  std::vector<report::CampaignPoint> points;  ///< one for each time that the clock was read
  bool begun = false;                         ///< there was a campaign
  std::optional<std::uint64_t> seed;          ///< with which it began; older ones do not say
};

/// Of what was asked again: it holds, or this is what is found now in its place.
void mend(report::RunRecord& findings, const report::Mended& mended);
void replace(report::RunRecord& findings, const std::string& fingerprint,
             const report::RunRecord& now);

/// At most this many points of a curve are recorded: a night has ten thousands.
inline constexpr std::size_t kMostPoints = 200;

/// Evenly chosen points, the last among them.
std::vector<report::CampaignPoint> thinned(const std::vector<report::CampaignPoint>& points);

/// What the journal of a campaign says; `file` is what errors call it. Throws InputError where a
/// newer version wrote it.
History history_of(std::string_view journal, const std::string& file);

/// The same, of a file; there may be none.
History read_history(const std::filesystem::path& journal);

}  // namespace lossgate::ci
