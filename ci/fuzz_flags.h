// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ci/fuzz.h"
#include "ci/merge.h"

namespace lossgate::ci {

/// What the flags of `fuzz` and `merge` are read into.
struct FuzzFlags {
  FuzzOptions options;
  MergeOptions merge;
  std::string budget = "10m", shard = "1/1", profile = "hostile", fail_on = "rare";
  std::string waivers, baseline;  ///< files; empty: none
  std::vector<std::string> configs;
  bool blind = false;
};

void add_fuzz(CLI::App& verb, FuzzFlags& flags);
void add_merge(CLI::App& verb, MergeOptions& merge);

/// What they say. Throws InputError.
FuzzOptions fuzz_options(FuzzFlags& flags);

}  // namespace lossgate::ci
