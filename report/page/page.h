// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reference/spec/case.h"
#include "report/benchmark_file.h"
#include "report/run_record.h"

namespace lossgate::report {

/// A record, the name of the folder that it lies in, and what was measured beside it.
struct Run {
  std::string name;
  RunRecord record;
  std::vector<Benchmark> benchmarks = {};
};

/// The case of a finding, with the loss that it is a case of.
struct StoredCase {
  const LossSignature* signature = nullptr;
  Case c;
};

/// What a page is made of. It shows the last run; the runs before it are what that one is compared
/// with.
struct PageSource {
  std::vector<Run> runs;
  std::map<std::string, StoredCase> cases;  ///< of the last run, by RecordedFinding::case_file

  const RunRecord& record() const { return runs.back().record; }
};

/// One HTML file that needs nothing else: verdict, board and findings in plain HTML, and a script
/// that filters, sorts and draws. The same source gives the same bytes.
std::string page(const PageSource& source);

}  // namespace lossgate::report
