// SPDX-License-Identifier: Apache-2.0
#include "ci/tasks.h"

#include <algorithm>

#include "ci/findings.h"
#include "ci/sound.h"
#include "ci/variant.h"

namespace lossgate::ci {
namespace {

constexpr std::int64_t kCasesPerTask = 32;

/// Nobody else sends it than a system that is out of memory.
constexpr std::string_view kKilled = "killed by signal 9";

}  // namespace

std::vector<Task> tasks_of(const Plan& plan) {
  std::vector<Task> tasks;
  for (const impl::Implementation* implementation : plan.selection().implementations) {
    if (!implementation->fault || !plan.can_show(*implementation)) continue;
    tasks.push_back({.begin = 0,
                     .end = plan.hostile_draws(*implementation),
                     .loss = implementation->loss,
                     .variant = implementation->name,
                     .skips = {}});
  }
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    tasks.push_back({.begin = begin, .end = end, .loss = {}, .variant = {}, .skips = {}});
  };
  const std::int64_t ordinary = plan.size() - plan.long_cases();
  for (std::int64_t at = 0; at < ordinary; at += kCasesPerTask) {
    add(at, std::min(at + kCasesPerTask, ordinary));
  }
  // One takes as long as hundreds.
  for (std::int64_t at = ordinary; at < plan.size(); ++at) add(at, at + 1);
  return tasks;
}

report::RunRecord run_task(const Plan& plan, const Task& task, Shown& shown, BenignCases& benign,
                           const Announce& announce, const Met& met) {
  if (!task.variant.empty()) return run_variant(plan, task, announce);
  return run_sound(plan, task, shown, benign, announce, met);
}

void InHand::announced(std::int64_t now, std::string_view name) {
  finding = finding && now == ordinal && name == implementation;
  ordinal = now;
  implementation = name;
}

PlannedCase case_of(const Plan& plan, const Task& task, std::int64_t ordinal) {
  if (task.variant.empty()) return plan.at(ordinal);
  return plan.hostile_at(*plan.selection().find_implementation(task.loss, task.variant), ordinal);
}

bool fails_for_length(const PlannedCase& planned, const std::string& property,
                      const std::string& cause) {
  // A loop over every token of a long case is slow, not wrong, and a square of them large: the
  // system ends who asks for more memory than there is.
  const bool large = cause.starts_with("no memory") || cause.find(kKilled) != std::string::npos;
  return planned.long_axis && (property == "does_not_hang" || large);
}

void add_failure(report::RunRecord& record, const PlannedCase& planned, std::int64_t ordinal,
                 const impl::Implementation& implementation, const std::string& property,
                 const std::string& cause) {
  report::Cell& row = report::cell(record, planned.c.spec.loss, implementation.name,
                                   std::string(name(planned.dtype)), property);
  if (fails_for_length(planned, property, cause)) {
    return tally(row, properties::skipped("long case: " + cause), ordinal);
  }
  properties::Outcome outcome;
  outcome.verdict = properties::Verdict::violated;
  tally(row, outcome, ordinal);
  add_finding(record, recorded_failure(planned, ordinal, implementation, property, cause));
}

const std::vector<report::PropertyEntry>& run_properties() {
  static const std::vector<report::PropertyEntry> properties = {
      {"does_not_crash", "core", "The call returns, whatever the input."},
      {"does_not_hang", "core", "The call returns within the time that it is given."},
  };
  return properties;
}

}  // namespace lossgate::ci
