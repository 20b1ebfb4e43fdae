// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "reference/tracked.h"

namespace lossgate::properties {

/// One entry of one output with what is expected of it.
struct ExpectedEntry {
  std::size_t output = 0;
  std::int64_t index = 0;
  reference::Tracked value;
};

/// The entries of a stream, computed on a thread of their own, a few blocks ahead of who takes
/// them.
class Ahead {
 public:
  using Take = std::function<void(const ExpectedEntry&)>;
  /// `stream` hands every entry on, and lets what that throws pass.
  explicit Ahead(std::function<void(const Take&)> stream);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  /// The next entry; throws what the stream threw, and std::out_of_range behind its end.
  const ExpectedEntry& next();

 private:
  using Block = std::vector<ExpectedEntry>;
  struct Abandoned {};

  void push(Block block, bool last);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> blocks_;
  bool ended_ = false, abandoned_ = false;
  std::exception_ptr error_;
  Block current_;
  std::size_t at_ = 0;
  std::thread thread_;
};

}  // namespace lossgate::properties
