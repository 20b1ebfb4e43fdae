// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ci/tasks.h"

/// What a gate and its workers say to each other: one line of JSON each. A worker reads the plan
/// and then tasks from its standard input, and answers each on descriptor kReplyDescriptor with
/// lines `at <case number> <implementation>` before a call, at least one a second, and, at the end,
/// one line: `done <record>` or `failed <reason>`. One may be told `load <plan>` before: then it
/// says `loaded <plan>`, with what the subjects said, or `refused <reason>` (ci/preload.h).
namespace lossgate::ci {

inline constexpr int kReplyDescriptor = 3;
inline constexpr int kSharedDescriptor = 4;  ///< of a campaign's worker: ci/under_way.h

std::string encode(const PlanOptions& options);
PlanOptions decode_plan(std::string_view line);  ///< throws MachineError

std::string encode(const Task& task);
Task decode_task(std::string_view line);  ///< throws MachineError

/// Of a worker's answer.
report::RunRecord decode_record(std::string_view json);  ///< throws MachineError

}  // namespace lossgate::ci
