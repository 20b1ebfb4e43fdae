// SPDX-License-Identifier: Apache-2.0
#include "ci/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "ci/errors.h"
#include "ci/protocol.h"
#include "impl/external/descendants.h"

namespace lossgate::ci {
namespace {

[[noreturn]] void fail(const char* what, int error) {
  throw MachineError(std::string(what) + ": " + std::generic_category().message(error));
}

// One thread per worker: the order of sums must not depend on how many cores there are.
std::vector<std::string> worker_environment() {
  std::vector<std::string> variables = {"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"};
  for (char** at = environ; *at; ++at) {
    const std::string_view variable = *at;
    if (variable.starts_with("OMP_NUM_THREADS=") || variable.starts_with("MKL_NUM_THREADS=")) {
      continue;
    }
    variables.emplace_back(variable);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

pid_t spawn(const std::string& verb, int requests, int replies, int shared) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, requests, 0);
  posix_spawn_file_actions_adddup2(&actions, replies, kReplyDescriptor);
  if (shared >= 0) posix_spawn_file_actions_adddup2(&actions, shared, kSharedDescriptor);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);  // what implementations print is no answer
  // A Ctrl-C, or the end of a job in CI, reaches the whole group; the worker waits for the gate to
  // end it.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = {"lossgate", verb}, variables = worker_environment();
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes,
                                pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail("a worker cannot be started", error);
  return pid;
}

}  // namespace

Child::Child(const std::string& verb, int shared) {
  std::array<int, 2> requests{}, replies{};
  if (::pipe2(requests.data(), O_CLOEXEC) != 0) fail("no pipe to a worker", errno);
  if (::pipe2(replies.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(requests[0]);
    ::close(requests[1]);
    fail("no pipe from a worker", error);
  }
  requests_ = requests[1];
  replies_ = replies[0];
  try {
    pid_ = spawn(verb, requests[0], replies[1], shared);
  } catch (...) {
    for (const int descriptor : {requests[0], requests[1], replies[0], replies[1]}) {
      ::close(descriptor);
    }
    throw;
  }
  ::close(requests[0]);
  ::close(replies[1]);
}

Child::~Child() {
  end();
  ::close(requests_);
  ::close(replies_);
}

void Child::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(requests_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return;
    if (written < 0) fail("a worker cannot be told what to do", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool Child::read() {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = ::read(replies_, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  arrived_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<std::string> Child::next_line() {
  const std::size_t end = arrived_.find('\n', taken_);
  if (end == std::string::npos) {
    arrived_.erase(0, taken_);
    taken_ = 0;
    return std::nullopt;
  }
  std::string line = arrived_.substr(taken_, end - taken_);
  taken_ = end + 1;
  return line;
}

std::string Child::end() {
  if (pid_ < 0) return "";
  ::kill(pid_, SIGKILL);  // without effect on how one ended that has ended before
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  impl::end_what_is_left_of(std::exchange(pid_, -1));
  if (WIFEXITED(status)) return "exited with status " + std::to_string(WEXITSTATUS(status));
  return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
         ::strsignal(WTERMSIG(status)) + ")";
}

std::vector<std::size_t> speaking(std::span<Child* const> children,
                                  std::chrono::milliseconds patience) {
  std::vector<pollfd> watched;
  for (const Child* child : children) {
    watched.push_back({.fd = child ? child->descriptor() : -1, .events = POLLIN, .revents = 0});
  }
  std::vector<std::size_t> heard;
  if (::poll(watched.data(), watched.size(), static_cast<int>(patience.count())) <= 0) return heard;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (watched[i].revents != 0) heard.push_back(i);
  }
  return heard;
}

void FailedStarts::failed(const std::string& how) {
  constexpr int kMost = 3;
  if (++count_ >= kMost) throw MachineError("workers end before they ask anything: " + how);
}

}  // namespace lossgate::ci
