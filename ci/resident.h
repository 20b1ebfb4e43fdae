// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace lossgate::ci {

/// Bytes of a process that are in memory; 0 where it has ended. See proc_pid_statm(5).
inline std::int64_t resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::int64_t total = 0, resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace lossgate::ci
