// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ci/emit.h"
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
  std::int64_t times = 1;
  EmitOptions emit;
};

/// The verb `replay`: everything that one case shows. Exit status 1 if it still fails.
int run_replay(const ReplayOptions& options);

struct MinimiseOptions {
  std::string file;
  std::string out;  ///< empty: beside the file, with .min.case in place of .case
  bool overwrite = false;
  std::int64_t tries = 20'000;
  Filters filters;  ///< implementations and properties
};

/// The verb `minimise`: the simplest case on which the first failure that the file shows is still
/// there, as a file.
int run_minimise(const MinimiseOptions& options);

struct ShareOptions {
  std::string file;
  std::string out;  ///< empty: beside the file, with .share.case in place of its extension
  bool overwrite = false;
  Filters filters;  ///< implementations and properties
};

/// The verb `share`: the case without its prose and with as few numbers as still fail, all of which
/// it lists, or the ranges of too many to read.
int run_share(const ShareOptions& options);

struct BaselineOptions {
  std::string record = "run/run.json";
  std::string out;  ///< empty: standard output
  bool overwrite = false;
};

/// The verb `baseline`: the findings of a record as a file for --baseline.
int run_baseline(const BaselineOptions& options);

struct ReportOptions {
  std::vector<std::string> runs;  ///< run.json files or their folders; the last is shown
  std::string benchmarks;         ///< measured beside the last run; empty: what its folder has
  std::string out;                ///< a folder; empty: that of the last run
};

/// The verb `report`: everything that people, reviewers and machines read, from records. Exit
/// status 0 whatever the records say.
int run_report(const ReportOptions& options);

}  // namespace lossgate::ci
