// SPDX-License-Identifier: Apache-2.0
#include "impl/external/deadline.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace lossgate::impl {
namespace {

class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    work();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

/// For ever, on the first processor that we may use.
void spin() {
  cpu_set_t ours, one;
  ::sched_getaffinity(0, sizeof ours, &ours);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &ours)) CPU_SET(cpu, &one);
  }
  ::sched_setaffinity(0, sizeof one, &one);
  for (volatile bool go = true; go;) {
  }
}

TEST(Deadline, LeavesTheTimeThatAProcessWaitsForAProcessorOut) {
  if (::access("/proc/self/schedstat", R_OK) != 0) GTEST_SKIP() << "the system does not tell";
  const Child one(spin), two(spin), three(spin);
  ::usleep(100'000);
  const Deadline deadline(one.pid(), 0.5);
  ::usleep(600'000);
  EXPECT_GT(deadline.left(), 0.0);
}

TEST(Deadline, CountsTheTimeThatAProcessSleeps) {
  const Child one([] { ::pause(); });
  ::usleep(100'000);
  const Deadline deadline(one.pid(), 0.2);
  EXPECT_GT(deadline.left(), 0.0);
  ::usleep(300'000);
  EXPECT_LE(deadline.left(), 0.0);
}

TEST(Deadline, CountsAllTimeWithoutAProcess) {
  const Deadline deadline(-1, 0.05);
  ::usleep(100'000);
  EXPECT_LE(deadline.left(), 0.0);
}

}  // namespace
}  // namespace lossgate::impl
