// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ci/child.h"
#include "ci/tasks.h"

namespace lossgate::ci {

struct PoolOptions {
  int jobs = 1;             ///< worker processes; 0: everything in this process, for a debugger
  double timeout_s = 60.0;  ///< for one implementation on one case, findings included
};

/// Where results go: the record of a finished task, or of a failure on the way.
using Collect = std::function<void(const report::RunRecord& part)>;

/// Told now and then how far the run is: whole tasks that are done, and how many findings are being
/// looked into.
using Tick = std::function<void(const Task* done, std::int64_t findings)>;

/// Does all tasks, in `first` if there is one, and in other workers. An implementation that crashes
/// or hangs becomes a finding, and its task is done again without that call. Returns early when
/// `interrupted` becomes true. Throws MachineError where workers cannot work at all.
void run_tasks(const Plan& plan, std::vector<Task> tasks, const PoolOptions& options,
               const Collect& collect, const Tick& tick, const std::atomic<bool>& interrupted,
               std::unique_ptr<Child> first = nullptr);

}  // namespace lossgate::ci
