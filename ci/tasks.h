// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ci/benign_cases.h"
#include "ci/plan.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// A case number and an implementation that must not be asked: it crashed or hung there.
using Skip = std::pair<std::int64_t, std::string>;

/// A part of a run that one process does in one go. What belongs to a task follows from the plan
/// alone, never from the number of processes.
struct Task {
  std::int64_t begin = 0, end = 0;  ///< case numbers of the plan; of a variant, hostile draws
  std::string loss, variant;        ///< a faulty implementation; empty: the sound ones
  std::vector<Skip> skips;
};

std::vector<Task> tasks_of(const Plan& plan);

/// Told before each call of an implementation under test: the case number and the name.
using Announce = std::function<void(std::int64_t ordinal, const std::string& implementation)>;

/// Told of a finding that is new before it is looked into, which takes seconds.
using Met = std::function<void()>;

/// What a process is at: the call that was announced last, and whether that is for a finding.
struct InHand {
  std::int64_t ordinal = -1;
  std::string implementation = {};
  bool finding = false;

  void announced(std::int64_t now, std::string_view name);
};

/// What a process has shown so far: the most ordinary grade of each fingerprint.
using Shown = std::map<std::string, properties::Grade>;

/// Does the task; a finding like one in `shown` is only counted. Throws what the harness itself
/// throws; what an implementation throws is a finding.
report::RunRecord run_task(const Plan& plan, const Task& task, Shown& shown, BenignCases& benign,
                           const Announce& announce, const Met& met = nullptr);

/// The case number `ordinal` of the task, as it was drawn.
PlannedCase case_of(const Plan& plan, const Task& task, std::int64_t ordinal);

/// Whether it is for its length that a call on a long case failed: it took too long, or more memory
/// than there is.
bool fails_for_length(const PlannedCase& planned, const std::string& property,
                      const std::string& cause);

/// Enters a violation of a property of the run, such as does_not_crash, into the record; or, where
/// a long case takes too long, that it was skipped.
void add_failure(report::RunRecord& record, const PlannedCase& planned, std::int64_t ordinal,
                 const impl::Implementation& implementation, const std::string& property,
                 const std::string& cause);

/// A brought subject runs in a process of its own, whose end is a finding. Where one of
/// ours ends instead, nothing is said of the subject.
inline const std::string kOwnProcess = "lossgate's own process failed, please report it: ";

/// Properties of the run rather than the value: does_not_crash, does_not_hang.
const std::vector<report::PropertyEntry>& run_properties();

}  // namespace lossgate::ci
