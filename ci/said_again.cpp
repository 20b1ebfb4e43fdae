// SPDX-License-Identifier: Apache-2.0
#include "ci/said_again.h"

#include <algorithm>
#include <iterator>

#include "ci/tasks.h"
#include "properties/verdict.h"

namespace lossgate::ci {
namespace {

using properties::Verdict;

/// Whether a gate of this case would be green: something held, and nothing was found.
bool is_clean(const report::RunRecord& answer) {
  return answer.findings.empty() && std::ranges::any_of(answer.cells, [](const auto& cell) {
           return cell.verdicts[static_cast<std::size_t>(Verdict::held)] > 0;
         });
}

/// Of one case: why the property finds nothing on it; empty where it was not asked for a reason
/// that says nothing of what was found, such as another violation that goes before it.
std::string why_nothing(const report::Cell& cell, bool clean) {
  const auto count = [&](Verdict verdict) {
    return cell.verdicts[static_cast<std::size_t>(verdict)];
  };
  const std::string reason = cell.reasons.empty() ? "" : cell.reasons.begin()->first;
  if (count(Verdict::violated) > 0) return "";
  if (count(Verdict::held) > 0) return "held";
  if (count(Verdict::skipped) == 0) return reason;
  const bool no_question = reason.starts_with("skipped: contract") ||  // or "...: micro_batches"
                           reason == std::string("skipped: ") + report::kOutsideContract ||
                           reason.starts_with("skipped: unsupported: ");
  const bool put_off =
      reason == "skipped: another formula" || reason.starts_with("skipped: long case");
  return no_question || (clean && !put_off) ? reason : "";
}

}  // namespace

bool is_of_run(const std::string& property) {
  return std::ranges::find(run_properties(), property, &report::PropertyEntry::name) !=
         run_properties().end();
}

SaidAgain said_again(const std::string& property, const report::RunRecord& answer) {
  const bool of_run = is_of_run(property), clean = is_clean(answer);
  for (const report::RecordedFinding& finding : answer.findings) {
    if (finding.property == property || (of_run && is_of_run(finding.property))) {
      return {.finding = finding, .mended = ""};
    }
  }
  for (const report::Cell& cell : answer.cells) {
    if (!of_run && cell.property != property) continue;
    if (of_run && cell.verdicts[static_cast<std::size_t>(Verdict::violated)] > 0) {
      return {.finding = {}, .mended = "held"};  // the call returns, whatever it gives
    }
    if (const std::string why = why_nothing(cell, clean); !why.empty()) {
      const bool no_question = why.starts_with("skipped: ");
      return {.finding = {}, .mended = of_run && !no_question ? "held" : why};
    }
  }
  return {};
}

report::RunRecord cells_with(const report::RecordedFinding& finding,
                             const report::RunRecord& answer) {
  report::RunRecord counted;
  std::ranges::copy_if(answer.cells, std::back_inserter(counted.cells),
                       [&](const report::Cell& cell) { return cell.property == finding.property; });
  return counted;
}

}  // namespace lossgate::ci
