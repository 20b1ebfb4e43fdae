// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "impl/cuda/block.h"

namespace lossgate::impl {

/// Address space for a huge array of which only the pages that are touched exist.
template <class T>
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t elements) : bytes_(elements * sizeof(T)) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    first_ = static_cast<T*>(memory);
  }
  ~SparseMemory() { munmap(first_, bytes_); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  T* data() const { return first_; }
  T& operator[](std::size_t i) const { return first_[i]; }

 private:
  std::size_t bytes_;
  T* first_ = nullptr;
};

}  // namespace lossgate::impl
