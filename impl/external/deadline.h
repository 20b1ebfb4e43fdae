// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace lossgate::impl {

/// When a process has had its time. What passes while other work keeps it from a processor is not
/// its own: on a busy machine that is most of it, and says nothing of whether it hangs.
class Deadline {
 public:
  /// From now on; without a process (pid < 0), or where the system does not tell, all time counts.
  Deadline(pid_t pid, double seconds);

  /// At least so many seconds are left; 0 or less: none.
  double left() const;

 private:
  pid_t pid_;
  double end_, waited_;
};

}  // namespace lossgate::impl
