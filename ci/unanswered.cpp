// SPDX-License-Identifier: Apache-2.0
#include "ci/unanswered.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lossgate::ci {
namespace {

constexpr std::string_view kUnsupported = "skipped: unsupported: ";

const std::string kOutside = std::string("skipped: ") + report::kOutsideContract;

/// How often each reason was given for not computing a case; empty where anything else was said, or
/// no case was for it.
std::map<std::string, std::int64_t> excuses(const report::RunRecord& record,
                                            const impl::Implementation& subject) {
  std::map<std::string, std::int64_t> all;
  for (const report::Cell& cell : record.cells) {
    if (cell.loss != subject.loss || cell.implementation != subject.name) continue;
    std::int64_t excused = 0;
    for (const auto& [reason, times] : cell.reasons) {
      const bool outside = reason == kOutside;
      if (!outside && !reason.starts_with(kUnsupported)) continue;
      all[outside ? "they are outside its contract" : reason.substr(kUnsupported.size())] += times;
      excused += times;
    }
    if (excused < cell.cases) return {};
  }
  return all;
}

}  // namespace

void add_unanswered(const Plan& plan, report::RunRecord& record) {
  for (const auto& brought : plan.selection().brought) {
    const impl::Implementation& subject = brought->implementation;
    const auto all = excuses(record, subject);
    if (all.empty()) continue;
    const auto by_times = [](const auto& excuse) { return excuse.second; };
    record.troubles.push_back(fmt::format("{}/{} answered no case: {}", subject.loss, subject.name,
                                          std::ranges::max_element(all, {}, by_times)->first));
  }
}

}  // namespace lossgate::ci
