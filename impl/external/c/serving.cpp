// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "impl/external/c/conversation.h"

namespace lossgate::impl {
namespace {

constexpr int kGone = 1;

bool read_all(int descriptor, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

/// Keeps the pipes, and gives the library an empty standard input and standard error to print on.
bool take_descriptors(int& requests, int& replies) {
  requests = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  replies = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
  const int empty = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return requests >= 0 && replies >= 0 && empty >= 0 && ::dup2(empty, 0) == 0 && ::dup2(2, 1) == 1;
}

}  // namespace

int serve_library() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a library that hangs does not outlive its gate
  int requests = -1, replies = -1;
  if (!take_descriptors(requests, replies)) return kGone;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what it prints is there when it crashes
  LibraryConversation conversation;
  tell_faults(conversation.arrays());
  std::uint64_t size = 0;
  std::vector<std::byte> frame;
  errno = 0;
  while (read_all(requests, std::as_writable_bytes(std::span(&size, 1)))) {
    frame.resize(size);
    if (!read_all(requests, frame)) break;
    const std::vector<std::byte> answer = conversation.answer(frame);
    size = answer.size();
    if (!write_all(replies, std::as_bytes(std::span(&size, 1))) || !write_all(replies, answer)) {
      ::_exit(kGone);
    }
    errno = 0;
  }
  ::_exit(errno == 0
              ? 0
              : kGone);  // no thread or exit hook of the library's keeps a finished worker alive
}

}  // namespace lossgate::impl
