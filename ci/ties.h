// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// Brings the candidate to the front that agrees on the most edges, of those that explain the same
/// answers: only there, or where the function is told something else, do clamps, bounds and the
/// forms of an end show. Returns those that are as good, the plainest first, each with what it has
/// otherwise; not what no case shows, as the estimator of a KL that counts for nothing.
std::vector<OptionValues> settle_ties(Function& function, Interview& interview);

}  // namespace lossgate::ci
