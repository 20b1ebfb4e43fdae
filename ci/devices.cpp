// SPDX-License-Identifier: Apache-2.0
#include "ci/devices.h"

#include <algorithm>
#include <string_view>

#include "impl/external/config.h"
#include "properties/verdict.h"

namespace lossgate::ci {
namespace {

using report::RecordedFinding;
using report::RunRecord;
using report::Subject;

/// The name that the subject was declared with; empty where it has one device.
std::string_view declared_name(const Subject& subject) {
  const std::string end = impl::on_device("", subject.device);
  std::string_view name = subject.name;
  if (!name.ends_with(end)) return "";
  name.remove_suffix(end.size());
  return name;
}

bool violates(const RunRecord& record, const Subject& subject, const RecordedFinding& finding) {
  constexpr auto kViolated = static_cast<std::size_t>(properties::Verdict::violated);
  return std::ranges::any_of(record.cells, [&](const report::Cell& cell) {
    return cell.loss == subject.loss && cell.implementation == subject.name &&
           cell.dtype == finding.dtype && cell.property == finding.property &&
           cell.verdicts[kViolated] > 0;
  });
}

bool shows_the_same(const RunRecord& record, const Subject& subject,
                    const RecordedFinding& finding) {
  return std::ranges::any_of(record.findings, [&](const RecordedFinding& other) {
    return other.loss == subject.loss && other.implementation == subject.name &&
           other.property == finding.property && other.cause == finding.cause;
  });
}

}  // namespace

void compare_devices(RunRecord& record) {
  for (RecordedFinding& finding : record.findings) {
    const auto own = std::ranges::find_if(record.subjects, [&](const Subject& subject) {
      return subject.loss == finding.loss && subject.name == finding.implementation;
    });
    if (own == record.subjects.end() || declared_name(*own).empty()) continue;
    for (const Subject& other : record.subjects) {
      const bool twin = other.loss == own->loss && other.device != own->device &&
                        declared_name(other) == declared_name(*own);
      if (!twin) continue;
      const bool same = shows_the_same(record, other, finding);
      const bool violated = same || violates(record, other, finding);
      finding.detail += "; on " + other.device +
                        (same       ? " the same"
                         : violated ? " for another cause"
                                    : " it holds");
    }
  }
}

}  // namespace lossgate::ci
