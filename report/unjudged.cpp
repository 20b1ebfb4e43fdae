// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "report/run_record.h"

namespace lossgate::report {
namespace {

using properties::Verdict;

constexpr std::string_view kNotComputed = "skipped: unsupported: ";

/// One question in so many may be left open before it is said.
constexpr std::int64_t kOneIn = 3;

/// What was put to an implementation, each case once for each property.
struct Questions {
  std::int64_t asked = 0, judged = 0, not_computed = 0, no_digit = 0;

  std::int64_t open() const { return not_computed + no_digit; }
  std::int64_t all() const { return judged + open(); }

  bool is_open() const { return judged == 0 && kOneIn * open() > asked; }

  void add(const Cell& c) {
    asked += c.cases;
    for (const Verdict verdict : {Verdict::held, Verdict::violated, Verdict::note}) {
      judged += c.verdicts[static_cast<std::size_t>(verdict)];
    }
    for (const auto& [reason, count] : c.reasons) {
      if (reason.starts_with(kNotComputed)) not_computed += count;
      const bool unbounded =
          reason == "vacuous: no digit" || reason == "skipped: reference overflow";
      if (unbounded) no_digit += count;
    }
  }
};

/// The first line of the reason that was given most often.
std::string usual(const std::map<std::string, std::int64_t>& excuses) {
  const std::string& most =
      std::ranges::max_element(excuses, {}, [](const auto& each) { return each.second; })->first;
  return most.substr(0, most.find('\n'));
}

}  // namespace

std::string unjudged_text(const RunRecord& record, const Subject& subject) {
  Questions all;
  std::map<std::string, Questions> of;  // each property
  std::map<std::string, std::int64_t> excuses;
  for (const Cell& c : record.cells) {
    if (c.loss != subject.loss || c.implementation != subject.name) continue;
    all.add(c);
    of[c.property].add(c);
    for (const auto& [reason, count] : c.reasons) {
      if (reason.starts_with(kNotComputed)) excuses[reason.substr(kNotComputed.size())] += count;
    }
  }
  std::string never;
  for (const PropertyEntry& p : record.properties) {
    const Questions& own = of[p.name];
    if (own.is_open()) never += (never.empty() ? "" : ", ") + p.name;
  }
  if (never.empty() && kOneIn * all.open() <= all.all()) return "";
  std::string text = fmt::format("{} of {} questions (", all.open(), all.all());
  if (all.not_computed > 0) {
    text += fmt::format("{} not computed: {}", all.not_computed, usual(excuses));
  }
  if (all.no_digit > 0) {
    text += fmt::format("{}{} no digit", all.not_computed > 0 ? "; " : "", all.no_digit);
  }
  return text + (never.empty() ? ")" : "); none judged of " + never);
}

std::string examined_text(const RunRecord& record, const Subject& subject) {
  std::map<std::string, std::int64_t> violated, examined;  // by property
  for (const Cell& c : record.cells) {
    if (c.loss != subject.loss || c.implementation != subject.name) continue;
    violated[c.property] += c.verdicts[static_cast<std::size_t>(Verdict::violated)];
  }
  for (const RecordedFinding& f : record.findings) {
    if (f.loss == subject.loss && f.implementation == subject.name) examined[f.property] += f.count;
  }
  std::int64_t all = 0, looked_into = 0;
  for (const auto& [property, count] : violated) {
    const auto found = examined.find(property);
    if (found == examined.end()) continue;
    all += count;
    looked_into += std::min(count, found->second);
  }
  if (looked_into == all) return "";
  return fmt::format("examined {} of {} violations: findings count those", looked_into, all);
}

}  // namespace lossgate::report
