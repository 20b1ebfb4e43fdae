// SPDX-License-Identifier: Apache-2.0
#include "ci/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "ci/errors.h"
#include "fuzz/hash.h"

namespace lossgate::ci {
namespace {

constexpr std::size_t kDigits = 16;

std::string checksum(std::string_view line) { return fmt::format("{:016x}", fuzz::hash_of(line)); }

bool ends_torn(int descriptor) {
  const off_t end = ::lseek(descriptor, 0, SEEK_END);
  char last = '\n';
  return end > 0 && ::pread(descriptor, &last, 1, end - 1) == 1 && last != '\n';
}

/// Whether no other process writes it. Who was just killed may leave a child that is about to be
/// another program, for a moment.
bool is_ours(int descriptor) {
  for (int i = 0; i < 20; ++i) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return true;  // no file is locked on such a disk
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

}  // namespace

Journal::Journal(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw MachineError(path.string() + ": " + std::generic_category().message(errno));
  }
  if (!is_ours(descriptor_)) {
    ::close(descriptor_);
    throw MachineError(path.parent_path().string() +
                       ": another lossgate works in this folder; wait for it, or name another");
  }
  torn_ = ends_torn(descriptor_);
}

Journal::~Journal() { ::close(descriptor_); }

void Journal::append(std::string line) {
  waiting_.push_back(std::move(line));
  flush();
}

bool Journal::flush() {
  while (!waiting_.empty() && write(waiting_.front())) waiting_.pop_front();
  if (waiting_.empty()) trouble_.clear();
  return waiting_.empty();
}

bool Journal::write(const std::string& line) {
  const std::string text = (torn_ ? "\n" : "") + checksum(line) + " " + line + "\n";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(descriptor_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) trouble_ = std::generic_category().message(errno);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  if (written > 0) torn_ = written < text.size();
  return written == text.size();
}

JournalText read_journal(std::string_view text) {
  JournalText read;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const bool whole = end != std::string_view::npos && line.size() > kDigits &&
                       line[kDigits] == ' ' &&
                       line.substr(0, kDigits) == checksum(line.substr(kDigits + 1));
    if (whole) {
      read.lines.emplace_back(line.substr(kDigits + 1));
    } else {
      ++read.damaged;
    }
  }
  return read;
}

}  // namespace lossgate::ci
