// SPDX-License-Identifier: Apache-2.0
#include "report/acceptance.h"

#include <fmt/format.h>

#include "report/plain_text.h"

namespace lossgate::report {

std::vector<std::string> accepted_lines(const RunRecord& record) {
  std::vector<std::string> lines;
  for (const RecordedFinding& f : record.findings) {
    if (!f.accepted()) continue;
    lines.push_back(fmt::format("{}: {}: {}", f.state, f.state_reason, f.fingerprint));
  }
  return lines;
}

std::vector<Idle> idle_entries(const RunRecord& record) {
  std::vector<Idle> all;
  const auto each = [&](const std::string& what, const std::vector<std::string>& names) {
    for (const std::string& name : names) all.push_back({.what = what, .name = name});
  };
  each(vanished_text(record), record.vanished);
  each("waiver that nothing needs any more", record.idle_waivers);
  each("fits nothing that exists", record.misfits);
  return all;
}

std::string vanished_text(const RunRecord& record) {
  if (record.cases_run >= record.baseline_cases) return "vanished from the baseline";
  return fmt::format("not met in these {} (the baseline is of {})",
                     counted(record.cases_run, "case"), grouped(record.baseline_cases));
}

}  // namespace lossgate::report
