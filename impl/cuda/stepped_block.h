// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "impl/cuda/block.h"

namespace lossgate::impl {

/// What a GPU would have done wrong without a word.
struct BlockFault : std::logic_error {
  using std::logic_error::logic_error;
};

/// In which order the threads make a step. No program may notice.
enum class ThreadOrder { forwards, backwards, shuffled };

/// An array that sees who reads and writes between two barriers. An element that one thread writes
/// and another one touches without a barrier between is a fault, whatever the order was this time.
template <class T>
class WatchedArray {
 public:
  WatchedArray(int n, const std::uint64_t& epoch)
      : elements_(static_cast<std::size_t>(n)), epoch_(&epoch) {}

  T get(int thread, int i) {
    Element& e = element(i);
    if (e.writer < 0) fail(thread, "reads", i, "nobody wrote");
    if (e.written == *epoch_ && e.writer != thread) {
      fail(thread, "reads", i, "thread " + std::to_string(e.writer) + " writes without a barrier");
    }
    e.reader = e.read == *epoch_ && e.reader != thread ? kSeveral : thread;
    e.read = *epoch_;
    return e.value;
  }

  void set(int thread, int i, T value) {
    Element& e = element(i);
    if (e.writer >= 0 && e.written == *epoch_ && e.writer != thread) {
      fail(thread, "writes", i, "thread " + std::to_string(e.writer) + " writes, too");
    }
    if (e.reader != kNobody && e.read == *epoch_ && e.reader != thread) {
      fail(thread, "writes", i, "another thread reads without a barrier");
    }
    e.writer = thread;
    e.written = *epoch_;
    e.value = value;
  }

 private:
  static constexpr int kNobody = -1, kSeveral = -2;

  struct Element {
    T value{};
    int writer = kNobody, reader = kNobody;
    std::uint64_t written = 0, read = 0;
  };

  Element& element(int i) {
    if (i < 0 || static_cast<std::size_t>(i) >= elements_.size()) {
      throw BlockFault("shared memory has no element " + std::to_string(i));
    }
    return elements_[static_cast<std::size_t>(i)];
  }

  [[noreturn]] static void fail(int thread, const char* does, int i, const std::string& other) {
    throw BlockFault("thread " + std::to_string(thread) + " " + does + " shared element " +
                     std::to_string(i) + ", which " + other);
  }

  std::vector<Element> elements_;
  const std::uint64_t* epoch_;
};

/// A block whose threads one host thread steps through.
class SteppedBlock : public BlockRules {
 public:
  template <class T>
  using PerThread = std::vector<T>;
  template <class T>
  using Shared = WatchedArray<T>;

  explicit SteppedBlock(int threads, ThreadOrder order = ThreadOrder::forwards)
      : threads_(threads), order_(order) {}
  SteppedBlock(const SteppedBlock&) = delete;  // arrays point to the epoch
  SteppedBlock& operator=(const SteppedBlock&) = delete;

  int threads() const { return threads_; }
  int lanes() const { return kWarpThreads; }

  /// Registers hold anything at first: NaN in floating point.
  template <class T>
  PerThread<T> per_thread() const {
    PerThread<T> values(static_cast<std::size_t>(threads_));
    std::memset(static_cast<void*>(values.data()), 0xff, values.size() * sizeof(T));
    return values;
  }

  template <class T>
  Shared<T> shared(int n) const {
    return {n, epoch_};
  }

  template <class F>
  void each(F&& f) const {
    for (int i = 0; i < threads_; ++i) f(thread_at(i));
  }

  void barrier() { ++epoch_; }

  template <class T>
  PerThread<T> exchanged(const PerThread<T>& values, int mask) const {
    PerThread<T> others(values.size());
    for (std::size_t t = 0; t < values.size(); ++t) {
      others[t] = values[t ^ static_cast<std::size_t>(mask)];
    }
    return others;
  }

  template <class T>
  T agreed(const PerThread<T>& values) const {
    for (const T& value : values) {
      if (value != values[0] && (value == value || values[0] == values[0])) {
        throw BlockFault("threads take different values for one that all share");
      }
    }
    return values[0];
  }

 private:
  int thread_at(int i) const {
    switch (order_) {
      case ThreadOrder::forwards:
        return i;
      case ThreadOrder::backwards:
        return threads_ - 1 - i;
      case ThreadOrder::shuffled:
        return (i * 37 + 11) % threads_;  // threads is a power of two
    }
    return i;
  }

  int threads_;
  ThreadOrder order_;
  std::uint64_t epoch_ = 0;
};

}  // namespace lossgate::impl
