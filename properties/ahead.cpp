// SPDX-License-Identifier: Apache-2.0
#include "properties/ahead.h"

#include <stdexcept>
#include <utility>

namespace lossgate::properties {
namespace {

constexpr std::size_t kBlock = 1 << 12;  ///< entries
constexpr std::size_t kBlocksAhead = 4;

}  // namespace

Ahead::Ahead(std::function<void(const Take&)> stream)
    : thread_([this, stream = std::move(stream)] {
        Block block;
        try {
          stream([&](const ExpectedEntry& entry) {
            block.push_back(entry);
            if (block.size() == kBlock) push(std::exchange(block, {}), false);
          });
        } catch (const Abandoned&) {
          return;
        } catch (...) {
          error_ = std::current_exception();
        }
        push(std::move(block), true);
      }) {}

Ahead::~Ahead() {
  {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Ahead::push(Block block, bool last) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return abandoned_ || last || blocks_.size() < kBlocksAhead; });
  if (abandoned_ && !last) throw Abandoned();
  blocks_.push_back(std::move(block));
  ended_ = last;
  changed_.notify_all();
}

const ExpectedEntry& Ahead::next() {
  while (at_ == current_.size()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !blocks_.empty(); });
    if (blocks_.empty()) {
      if (error_) std::rethrow_exception(error_);
      throw std::out_of_range("no entry is left");
    }
    current_ = std::move(blocks_.front());
    blocks_.pop_front();
    at_ = 0;
    changed_.notify_all();
  }
  return current_[at_++];
}

}  // namespace lossgate::properties
