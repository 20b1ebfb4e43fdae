// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// Brings the candidate to the front that agrees on the most edges, of those that explain the same
/// answers: only there do clamps and bounds show. Returns in what those differ that are as good:
/// `log_ratio_clamp 20`.
std::vector<std::string> settle_by_edges(Function& function, Interview& interview);

/// Telling cases under every reduction that is the loss's.
std::vector<Case> right_cases(const Interview& interview);

/// Makes a case tell the function that, and whatever follows it.
void tell(const Interview& interview, Case& c, const std::string& option, const OptionValue& value);

/// Lets go of every told option that the function follows wherever it is told to go: one at a time,
/// then all together. Those that stay in `interview.subject.options` are right at that value only,
/// or at any number, where none alone is wrong.
void free_told_options(Function& function, Interview& interview);

/// Whether means over sequences leave those without a valid position out, or count them.
EmptyRows empty_rows_of(Function& function, const Interview& interview);

}  // namespace lossgate::ci
