// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lossgate::ci {

/// A process of this program, a `lossgate worker`, with a pipe to it and one from it. Started by
/// executing the program again: a fork would hang after LibTorch's threads. Ended when it goes out
/// of scope.
class Child {
 public:
  /// `shared`, if any, is what the process finds open as kSharedDescriptor. Throws MachineError.
  explicit Child(const std::string& verb = "worker", int shared = -1);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Throws MachineError, except that a child that has ended is met later, by read().
  void write(std::string_view text);

  int descriptor() const { return replies_; }
  pid_t pid() const { return pid_; }

  /// Takes in what has arrived; false at the end of what there will ever be.
  bool read();
  /// The next whole line that has arrived.
  std::optional<std::string> next_line();

  /// Kills it if it lives; says how it ended.
  std::string end();

 private:
  pid_t pid_ = -1;
  int requests_ = -1, replies_ = -1;
  std::string arrived_;
  std::size_t taken_ = 0;
};

/// Which of the children have said something, or ended: their indices. Waits so long for one that
/// does. Null is a child that says nothing.
std::vector<std::size_t> speaking(std::span<Child* const> children,
                                  std::chrono::milliseconds patience);

/// What a process may take to load an interpreter and all that it imports, in seconds.
inline constexpr double kSecondsToLoad = 300.0;

/// Counts processes that end before they have done anything.
class FailedStarts {
 public:
  void worked() { count_ = 0; }
  void failed(const std::string& how);  ///< throws MachineError at the third in a row

 private:
  int count_ = 0;
};

}  // namespace lossgate::ci
