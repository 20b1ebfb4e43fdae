// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "impl/cuda/block.h"

namespace lossgate::impl {

/// A thread's own value.
template <class T>
class OwnValue {
 public:
  __device__ T& operator[](int) { return value_; }
  __device__ const T& operator[](int) const { return value_; }

 private:
  T value_;
};

template <class T>
class SharedArray {
 public:
  __device__ explicit SharedArray(T* elements) : elements_(elements) {}
  __device__ T get(int, int i) const { return elements_[i]; }
  __device__ void set(int, int i, T value) { elements_[i] = value; }

 private:
  T* elements_;
};

/// The threads of a CUDA block, each of which runs the program. Shared arrays are handed out from
/// the launch's dynamic shared memory, one after the other.
class DeviceBlock : public BlockRules {
 public:
  template <class T>
  using PerThread = OwnValue<T>;
  template <class T>
  using Shared = SharedArray<T>;

  __device__ explicit DeviceBlock(unsigned char* memory) : memory_(memory) {}

  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ static constexpr int lanes() { return kWarpThreads; }

  template <class T>
  __device__ PerThread<T> per_thread() const {
    return {};
  }

  template <class T>
  __device__ Shared<T> shared(int n) {
    T* const first = reinterpret_cast<T*>(memory_);
    memory_ += (static_cast<std::size_t>(n) * sizeof(T) + 15) / 16 * 16;
    return Shared<T>(first);
  }

  template <class F>
  __device__ void each(F&& f) const {
    f(static_cast<int>(threadIdx.x));
  }

  __device__ void barrier() const { __syncthreads(); }

  template <class T>
  __device__ PerThread<T> exchanged(const PerThread<T>& values, int mask) const {
    PerThread<T> others;
    others[0] = __shfl_xor_sync(0xffffffffu, values[0], mask);
    return others;
  }

  template <class T>
  __device__ T agreed(const PerThread<T>& values) const {
    return values[0];
  }

 private:
  unsigned char* memory_;
};

}  // namespace lossgate::impl
