// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "properties/verdict.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// A finding that is accepted until a day, with the reason why.
struct Waiver {
  std::string pattern;  ///< a fingerprint; * stands for any characters
  std::string reason, issue;
  std::string expires;  ///< YYYY-MM-DD, the last day on which it holds
  int line = 0;
};

/// Reads `fingerprint-or-pattern | reason | issue | expires YYYY-MM-DD` lines; # starts a comment.
/// Throws InputError with file and line.
std::vector<Waiver> parse_waivers(std::string_view text, const std::string& file);

/// A fingerprint accepted as today's state, with words for the reader of a diff.
struct Accepted {
  std::string fingerprint, grade, remark;
};

std::vector<Accepted> parse_baseline(std::string_view text, const std::string& file);

/// Of how many cases the run was that the baseline was made of; 0 where it does not say.
std::int64_t cases_of_baseline(std::string_view text);

/// One line per finding of the record, sorted, for review.
std::string baseline_text(const report::RunRecord& record);

/// What decides whether a finding is red.
struct Policy {
  properties::Grade fail_on = properties::Grade::rare;
  std::vector<Waiver> waivers;
  std::vector<Accepted> baseline;
  std::int64_t baseline_cases = 0;  ///< of how many the run was that it is of; 0: unknown
  std::string today;                ///< YYYY-MM-DD
  /// Whether to name what a whole run did not need. Not of a campaign, which meets what it meets.
  bool names_idle = true;
};

/// As of today, with what the files say; empty: none. Throws InputError.
Policy read_policy(properties::Grade fail_on, const std::string& waivers,
                   const std::string& baseline);

/// Sets the state of one finding.
void judge(report::RecordedFinding& finding, const Policy& policy);

/// Sets the state of every finding, and names what a whole run did not need: accepted findings that
/// it did not find, waivers that match none.
void judge(report::RunRecord& record, const Policy& policy);

bool matches(std::string_view pattern, std::string_view text);

/// The calendar day in UTC.
std::string today();

}  // namespace lossgate::ci
