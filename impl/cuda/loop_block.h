// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/cuda/block.h"

namespace lossgate::impl {

/// A value of a block's only thread.
template <class T>
class OnlyThread {
 public:
  T& operator[](int) { return value_; }
  const T& operator[](int) const { return value_; }

 private:
  T value_{};
};

template <class T>
class PlainArray {
 public:
  explicit PlainArray(int n) : elements_(static_cast<std::size_t>(n)) {}
  T get(int, int i) const { return elements_[static_cast<std::size_t>(i)]; }
  void set(int, int i, T value) { elements_[static_cast<std::size_t>(i)] = value; }

 private:
  std::vector<T> elements_;
};

/// A block of one thread: the program as a loop over packs, for the CPU.
class LoopBlock : public BlockRules {
 public:
  template <class T>
  using PerThread = OnlyThread<T>;
  template <class T>
  using Shared = PlainArray<T>;

  static constexpr int threads() { return 1; }
  static constexpr int lanes() { return 1; }

  template <class T>
  PerThread<T> per_thread() const {
    return {};
  }
  template <class T>
  Shared<T> shared(int n) const {
    return Shared<T>(n);
  }
  template <class F>
  void each(F&& f) const {
    f(0);
  }
  void barrier() const {}
  template <class T>
  PerThread<T> exchanged(const PerThread<T>& values, int) const {
    return values;
  }
  template <class T>
  T agreed(const PerThread<T>& values) const {
    return values[0];
  }
};

}  // namespace lossgate::impl
