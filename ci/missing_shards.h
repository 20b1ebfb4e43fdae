// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/run_record.h"

namespace lossgate::ci {

/// What is missing of campaigns that were dealt to machines, one trouble for each number of shards
/// that any of these records is one of: "1 of 2 shards missing: 1/2".
std::vector<std::string> missing_shards(const std::vector<report::RunRecord>& parts);

}  // namespace lossgate::ci
