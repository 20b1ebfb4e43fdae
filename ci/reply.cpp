// SPDX-License-Identifier: Apache-2.0
#include "ci/reply.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "ci/errors.h"
#include "ci/protocol.h"

namespace lossgate::ci {

void become_worker() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What a subject's process writes on whatever it finds open is no answer of ours.
  ::fcntl(kReplyDescriptor, F_SETFD, FD_CLOEXEC);
  // A long case takes and gives back megabytes a thousand times over; from the system, each of them
  // would be a tenth of its time.
  constexpr int kMebibyte = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, 64 * kMebibyte);
  ::mallopt(M_TRIM_THRESHOLD, 128 * kMebibyte);
}

void reply(const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t written = ::write(kReplyDescriptor, text.data() + sent, text.size() - sent);
    if (written < 0 && errno != EINTR) throw MachineError("the gate no longer listens");
    if (written > 0) sent += static_cast<std::size_t>(written);
  }
}

std::string one_line(std::string text) {
  for (char& letter : text) letter = letter == '\n' ? ' ' : letter;
  return text;
}

}  // namespace lossgate::ci
