// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lossgate::ci {

struct MergeOptions {
  std::vector<std::string> folders;
  std::string out;
};

/// The verb `merge`: the findings, cases and records of several campaigns, of the shards of one
/// say, as those of one campaign, from which `fuzz` can go on. Exit status 1 if it has red
/// findings, 3 if a shard is missing or something brought was asked by none.
int run_merge(const MergeOptions& options);

}  // namespace lossgate::ci
