// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "ci/errors.h"
#include "ci/target.h"
#include "ci/verbs.h"
#include "ci/waivers.h"
#include "corpora/files.h"
#include "report/record_file.h"

namespace lossgate::ci {

int run_baseline(const BaselineOptions& options) {
  if (!options.out.empty()) {
    check_target(options.out, options.overwrite ? Present::overwrite : Present::refuse);
  }
  std::filesystem::path file = options.record;
  if (std::filesystem::is_directory(file)) file /= "run.json";
  const report::RunRecord record = report::read_record(file);
  if (!record.complete()) {
    throw InputError(options.record +
                     ": the run is not whole; a baseline of it would miss findings");
  }
  const std::string text = baseline_text(record);
  if (options.out.empty()) {
    fmt::print("{}", text);
    return static_cast<int>(Exit::green);
  }
  try {
    corpora::write_file(options.out, text);
  } catch (const std::filesystem::filesystem_error& error) {
    throw MachineError(options.out + ": cannot be written: " + error.code().message());
  }
  fmt::print("{} findings accepted in {}\n", record.findings.size(), options.out);
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
