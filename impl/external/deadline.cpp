// SPDX-License-Identifier: Apache-2.0
#include "impl/external/deadline.h"

#include <chrono>
#include <fstream>
#include <string>

namespace lossgate::impl {
namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// Seconds that the process's main thread was ready to run while its processors did something else:
/// the second number of schedstat, see proc_pid_schedstat(5) and Documentation/scheduler of Linux.
double waited_for_processor(pid_t pid) {
  double ran = 0.0, waited = 0.0;
  if (pid < 0) return waited;
  std::ifstream("/proc/" + std::to_string(pid) + "/schedstat") >> ran >> waited;
  return waited * 1e-9;
}

}  // namespace

Deadline::Deadline(pid_t pid, double seconds)
    : pid_(pid), end_(now() + seconds), waited_(waited_for_processor(pid)) {}

double Deadline::left() const {
  const double left = end_ - now();
  if (left > 0.0) return left;
  return left + (waited_for_processor(pid_) - waited_);
}

}  // namespace lossgate::impl
