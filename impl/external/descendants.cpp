// SPDX-License-Identifier: Apache-2.0
#include "impl/external/descendants.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

namespace lossgate::impl {
namespace {

std::string mark_of(pid_t starter) {
  return std::string(kMarkVariable) + std::to_string(starter) + ".";
}

/// Processes that have the mark at the head of a variable of their environment. Those of other
/// users cannot be read, and are none of ours.
std::vector<pid_t> marked(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure != std::errc() || end != name.data() + name.size() || pid == ::getpid()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string variables(std::istreambuf_iterator<char>(file), {});
    const std::size_t at = variables.find(mark);
    if (at != std::string::npos && (at == 0 || variables[at - 1] == '\0')) found.push_back(pid);
  }
  return found;
}

}  // namespace

std::string new_mark() {
  static std::atomic<int> count = 0;
  return mark_of(::getpid()) + std::to_string(++count) + ".";
}

void end_marked(const std::string& mark) {
  // What they start meanwhile carries it, too.
  constexpr int kMostRounds = 100;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<pid_t> found = marked(mark);
    if (found.empty()) return;
    for (const pid_t pid : found) ::kill(pid, SIGKILL);
    ::usleep(1000);
  }
}

void end_what_is_left_of(pid_t starter) { end_marked(mark_of(starter)); }

}  // namespace lossgate::impl
