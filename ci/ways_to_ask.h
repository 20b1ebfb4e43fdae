// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ci/explanation.h"
#include "ci/interview.h"

/// Other ways to ask a function than it was asked, the likelier first: each changes one thing.
namespace lossgate::ci {

/// How it takes its arguments and what comes back: the first to be tried.
std::vector<impl::Subject> other_ways(const Interview& interview);

/// As what explains its answers says, which takes thousands of formulas to find.
std::vector<impl::Subject> explained_ways(const Interview& interview,
                                          const std::optional<Explanation>& explanation);

/// Where less is asked of it: other values than it refuses, an axis of one extent.
std::vector<impl::Subject> narrower_ways(const Interview& interview);

}  // namespace lossgate::ci
