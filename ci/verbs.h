// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/selection.h"

namespace lossgate::ci {

/// The verb `list`: losses, implementations, properties or profiles; everything that can be listed
/// without opening LibTorch where `what` is empty.
int run_list(const std::string& what);

/// The verb `describe`: a loss, a property, a rule of properties/README.md or an implementation.
int run_describe(const std::string& name);

struct ReplayOptions {
  std::string file;
  Filters filters;  ///< implementations and properties
};

/// The verb `replay`: everything that one case shows. Exit status 1 if it still fails.
int run_replay(const ReplayOptions& options);

struct BaselineOptions {
  std::string record = "run/run.json";
  std::string out;  ///< empty: standard output
};

/// The verb `baseline`: the findings of a record as a file for --baseline.
int run_baseline(const BaselineOptions& options);

}  // namespace lossgate::ci
