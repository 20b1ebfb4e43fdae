// SPDX-License-Identifier: Apache-2.0
#include "impl/external/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "impl/external/descendants.h"
#include "impl/external/last_words.h"

namespace lossgate::impl {
namespace {

/// An answer beyond this is no answer.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;
constexpr std::size_t kLastWords = 16000;  // a traceback of all threads

/// Of what it writes to standard error, no more is kept: a night of it is gigabytes of memory.
constexpr std::int64_t kMostComplaints = std::int64_t{1} << 20;
/// For a traceback of what did not answer.
constexpr int kPatienceMs = 500;
constexpr double kTrimEvery = 1.0;  // in seconds, while it is waited for

[[noreturn]] void fail(const std::string& what, int error) {
  throw ProcessEnded(what + ": " + std::generic_category().message(error));
}

/// Under a limit from its first instruction on, so that whatever it starts has it as well. Memory
/// beyond it is refused by the system, which is an exception in most languages.
std::vector<std::string> limited(const Command& command) {
  if (command.megabytes <= 0) return command.words;
  const std::string limit = "ulimit -d " + std::to_string(command.megabytes << 10);
  std::vector<std::string> words = {"sh", "-c", limit + " && exec \"$0\" \"$@\""};
  words.insert(words.end(), command.words.begin(), command.words.end());
  return words;
}

std::vector<std::string> variables_of(const Command& command, const std::string& mark) {
  std::vector<std::string> variables;
  for (char** at = environ; *at; ++at) {
    const std::string_view variable = *at;
    const auto same = [&](const auto& own) {
      return variable.starts_with(own.first) && variable.substr(own.first.size()).starts_with("=");
    };
    if (variable.starts_with(kMarkVariable)) continue;
    if (std::ranges::none_of(command.environment, same)) variables.emplace_back(variable);
  }
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);
  variables.push_back(mark);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

int spawn(const Command& command, const std::string& mark, int requests, int replies,
          int complaints, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, requests, 0);
  posix_spawn_file_actions_adddup2(&actions, replies, 1);
  posix_spawn_file_actions_adddup2(&actions, complaints, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);  // our own pipes are none of its business
  if (!command.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, command.folder.c_str());
  }
  // A group of its own, in which signals do what they do everywhere, whatever we leave to others.
  sigset_t none, ends;
  sigemptyset(&none);
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &ends);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = limited(command), variables = variables_of(command, mark);
  const int error = posix_spawnp(&pid, words[0].c_str(), &actions, &attributes,
                                 pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

void close_all(std::initializer_list<int> descriptors) {
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

}  // namespace

Process::Process(const Command& command) : mark_(new_mark()), says_where_(command.says_where) {
  // A subject that is gone is met as an error of the call, not as a signal.
  ::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> requests{-1, -1}, replies{-1, -1};
  complaints_ = ::memfd_create("complaints", MFD_CLOEXEC);
  // Whoever writes goes on at the end, wherever that is by then.
  if (complaints_ >= 0) ::fcntl(complaints_, F_SETFL, O_APPEND);
  int error = complaints_ < 0 || ::pipe2(requests.data(), O_CLOEXEC) != 0 ||
                      ::pipe2(replies.data(), O_CLOEXEC) != 0
                  ? errno
                  : 0;
  if (error == 0) error = spawn(command, mark_, requests[0], replies[1], complaints_, pid_);
  close_all({requests[0], replies[1]});
  if (error != 0) {
    close_all({requests[1], replies[0], complaints_});
    pid_ = -1;
    fail("cannot be started", error);
  }
  // Whoever runs out of memory is to be the subject, not somebody else.
  std::ofstream("/proc/" + std::to_string(pid_) + "/oom_score_adj") << 1000;
  requests_ = requests[1];
  replies_ = replies[0];
  ::fcntl(requests_, F_SETFL, O_NONBLOCK);
}

Process::Process(int requests, int replies)
    : requests_(requests), replies_(replies), owned_(false) {
  ::signal(SIGPIPE, SIG_IGN);
}

Process::~Process() {
  if (!owned_) return;
  end(0);
  close_all({requests_, replies_, complaints_});
}

std::vector<std::byte> Process::ask(std::span<const std::byte> frame, double seconds) {
  const Deadline until(pid_, seconds);
  send(frame, until);
  return receive(until);
}

std::vector<std::byte> Process::hear(double seconds) { return receive(Deadline(pid_, seconds)); }

std::vector<std::byte> Process::receive(const Deadline& until) {
  std::array<std::byte, 8> length;
  std::uint64_t size = 0;
  read(length, until);
  std::memcpy(&size, length.data(), sizeof size);
  if (size > kMostBytes) {
    end(0);
    throw ProcessEnded("what came back is no frame");
  }
  // Grown as it comes: nothing is allocated whose size is only claimed.
  std::vector<std::byte> answer;
  constexpr std::size_t kStep = std::size_t{1} << 24;
  while (answer.size() < size) {
    const std::size_t had = answer.size();
    answer.resize(std::min<std::size_t>(size, had + kStep));
    read(std::span(answer).subspan(had), until);
  }
  trim_complaints(0);  // it has outlived what it said so far
  return answer;
}

void Process::tell(std::span<const std::byte> frame, double seconds) {
  send(frame, Deadline(pid_, seconds));
}

std::int64_t Process::room() const {
  const int bytes = ::fcntl(requests_, F_GETPIPE_SZ);  // users with many pipes get small ones
  return bytes > 0 ? bytes / static_cast<std::int64_t>(kPage) - 1 : 0;
}

/// Length and frame in one go: a length that comes alone wakes the other side for nothing.
void Process::send(std::span<const std::byte> frame, const Deadline& until) {
  std::uint64_t size = frame.size();
  auto length = std::as_writable_bytes(std::span(&size, 1));
  while (!length.empty() || !frame.empty()) {
    const std::array<iovec, 2> parts = {
        {{length.data(), length.size()}, {const_cast<std::byte*>(frame.data()), frame.size()}}};
    const ssize_t written = ::writev(requests_, parts.data(), parts.size());
    if (written > 0) {
      const auto of_length = std::min(static_cast<std::size_t>(written), length.size());
      length = length.subspan(of_length);
      frame = frame.subspan(static_cast<std::size_t>(written) - of_length);
    } else if (errno == EAGAIN) {
      wait(requests_, POLLOUT, until);
    } else if (errno != EINTR) {
      ended();
    }
  }
}

void Process::read(std::span<std::byte> bytes, const Deadline& until) {
  while (!bytes.empty()) {
    wait(replies_, POLLIN, until);
    const ssize_t count = ::read(replies_, bytes.data(), bytes.size());
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      ended();
    }
  }
}

void Process::wait(int descriptor, short events, const Deadline& until) {
  for (;;) {
    const double left = until.left();
    if (left <= 0.0) hung();
    pollfd one{descriptor, events, 0};
    const double patience = std::min(left, kTrimEvery);
    const int ready = ::poll(&one, 1, static_cast<int>(patience * 1000.0 + 1.0));
    trim_complaints(kMostComplaints);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail("poll", errno);
  }
}

void Process::ended() {
  const std::string how = owned_ ? end(2000) : "stopped listening";
  const std::string words = last_words(complaints());
  throw ProcessEnded(how + (words.empty() ? "" : "; it said last: " + words));
}

void Process::hung() {
  if (says_where_ && pid_ > 0) ::kill(pid_, SIGABRT);
  end(says_where_ ? kPatienceMs : 0);
  const std::string where = says_where_ ? innermost_frame(complaints()) : "";
  throw ProcessHung("no answer in the time that a call has" +
                    (where.empty() ? "" : "; it was at " + where));
}

std::string Process::end(int patience_ms) {
  if (pid_ < 0) return "it is gone";
  // One that has closed its pipe is about to end; its own status tells more than our signal.
  int status = 0;
  pid_t reaped = 0;
  for (int i = 0; i <= patience_ms && reaped == 0; ++i) {
    reaped = ::waitpid(pid_, &status, WNOHANG);
    if (reaped == 0) ::usleep(1000);
  }
  ::kill(-pid_, SIGKILL);  // it, and what it has started in its group
  while (reaped == 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  end_marked(mark_);
  if (WIFEXITED(status)) return "exited with status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

void Process::trim_complaints(std::int64_t most) {
  struct stat info {};
  if (complaints_ < 0 || ::fstat(complaints_, &info) != 0) return;
  if (info.st_size > most) static_cast<void>(::ftruncate(complaints_, 0));
}

/// The end of what it wrote to standard error.
std::string Process::complaints() const {
  if (complaints_ < 0) return "";
  struct stat info {};
  if (::fstat(complaints_, &info) != 0 || info.st_size == 0) return "";
  const auto from = std::max<off_t>(0, info.st_size - static_cast<off_t>(kLastWords));
  std::string text(static_cast<std::size_t>(info.st_size - from), '\0');
  const ssize_t count = ::pread(complaints_, text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace lossgate::impl
