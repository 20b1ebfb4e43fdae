// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/arm.h"
#include "ci/history.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// How a campaign goes on unlike it began: with another seed, or without what it asked before. Said
/// and no error, as a subject may be gone, and other filters may be meant.
std::vector<std::string> unlike_before(const History& history, const std::vector<Arm>& arms,
                                       const report::Request& request);

}  // namespace lossgate::ci
