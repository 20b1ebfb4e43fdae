// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "ci/errors.h"
#include "ci/out_folder.h"
#include "ci/verbs.h"
#include "report/board.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

// A run is named by its run.json or by the folder of that.
fs::path record_file(const std::string& run) {
  return fs::is_directory(run) ? fs::path(run) / "run.json" : fs::path(run);
}

report::Run read_run(const std::string& run) {
  const fs::path file = record_file(run);
  report::Run read = {run_name(file.parent_path()), report::read_record(file)};
  say_folder(file.parent_path(), read.record);
  const fs::path benchmarks = file.parent_path() / "benchmarks.json";
  if (fs::exists(benchmarks)) read.benchmarks = report::read_benchmarks(benchmarks);
  return read;
}

}  // namespace

int run_report(const ReportOptions& options) {
  report::PageSource source;
  for (const std::string& run : options.runs) source.runs.push_back(read_run(run));
  if (!options.benchmarks.empty()) {
    source.runs.back().benchmarks = report::read_benchmarks(options.benchmarks);
  }
  const fs::path folder = record_file(options.runs.back()).parent_path();
  source.cases = stored_cases(folder, source.record());
  const fs::path out = options.out.empty() ? folder : fs::path(options.out);
  write_views(out, source);
  fmt::print("{}\nresults: {}\n", report::verdict_line(source.record()), views_in(out));
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
