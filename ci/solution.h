// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// Looks for values of untold options under which the formula gives the answers, beginning at the
/// likest candidates, among usual numbers before others, and puts what it finds in front of
/// `likenesses`.
void solve_untold(Interview& interview);

/// Moves that option to where the formula comes nearest which brings it nearest of all, as long as
/// that helps.
Likeness descend(const Interview& interview, Likeness from,
                 const std::vector<std::string>& options);

}  // namespace lossgate::ci
