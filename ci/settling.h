// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// Telling cases under every reduction that is the loss's.
std::vector<Case> right_cases(const Interview& interview);

/// What an option may be told besides what it stands at, the ends of its range included.
std::vector<OptionValue> far_values(const Option& option, const OptionValue& now);

/// Makes a case tell the function that, and whatever follows it.
void tell(const Interview& interview, Case& c, const std::string& option, const OptionValue& value);

/// Two options of which each is right wherever it goes, and not together: one stays, and the other
/// could in its place, at that value.
struct Choice {
  std::string stays, other;
  OptionValue value;
};

/// Lets go of every told option that the function follows wherever it is told to go: one at a time,
/// then all together. Those that stay in `interview.subject.options` are right at that value only,
/// or at any number, where none alone is wrong. Returns what else could have stayed.
std::vector<Choice> free_told_options(Function& function, Interview& interview);

/// Whether means over sequences leave those without a valid position out, or count them.
EmptyRows empty_rows_of(Function& function, const Interview& interview);

}  // namespace lossgate::ci
