// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// Other ways to ask a function than it was asked, the likelier first: each changes one thing.
std::vector<impl::Subject> other_ways(const Interview& interview);

}  // namespace lossgate::ci
