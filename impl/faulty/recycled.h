// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

namespace lossgate::impl {

/// A vector that begins with the memory of one that its thread no longer needs: the tape of a long
/// case would ask for it anew each time.
template <class T>
class Recycled : public std::vector<T> {
 public:
  Recycled() {
    if (shelf().empty()) return;
    this->swap(shelf().back());
    shelf().pop_back();
  }
  ~Recycled() {
    this->clear();
    shelf().push_back(std::move(*this));
  }
  Recycled(const Recycled&) = delete;
  Recycled& operator=(const Recycled&) = delete;

 private:
  static std::vector<std::vector<T>>& shelf() {
    static thread_local std::vector<std::vector<T>> vectors;
    return vectors;
  }
};

}  // namespace lossgate::impl
