// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <mutex>

#include "impl/cuda/device_form.h"
#include "impl/cuda/gpu.h"
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

std::byte* allocate_alone(std::size_t bytes) {
  void* memory = nullptr;
  require_success(cudaMallocManaged(&memory, bytes == 0 ? 1 : bytes), "memory");
  return static_cast<std::byte*>(memory);
}

/// The arrays of a small case, side by side: pages move between host and device together, and
/// nothing is mapped for each array. Free again when none is in use.
class Slab {
 public:
  /// Null where there is no room.
  std::byte* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!start_) start_ = allocate_alone(kBytes);
    if (used_ + bytes >= kBytes) return nullptr;
    std::byte* const memory = start_ + used_;
    used_ += (bytes / kAlignment + 1) * kAlignment;
    ++arrays_;
    return memory;
  }

  /// False where the array is not from here.
  bool release(const std::byte* memory) {
    const std::lock_guard lock(mutex_);
    if (!start_ || memory < start_ || memory >= start_ + kBytes) return false;
    if (--arrays_ == 0) used_ = 0;
    return true;
  }

 private:
  static constexpr std::size_t kAlignment = 256;  ///< bytes, as cudaMalloc's
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  std::mutex mutex_;
  std::byte* start_ = nullptr;  ///< never freed: the device may be gone before the process
  std::size_t used_ = 0, arrays_ = 0;
};

Slab& slab() {
  static Slab& instance = *new Slab;  // arrays may outlive what is static
  return instance;
}

/// So that compute-sanitizer sees a read beside an array.
bool are_apart() {
  static const bool apart = std::getenv("LOSSGATE_GPU_ARRAYS_APART") != nullptr;
  return apart;
}

std::byte* allocate(std::size_t bytes) {
  std::byte* const memory = are_apart() ? nullptr : slab().allocate(bytes);
  return memory ? memory : allocate_alone(bytes);
}

void release(std::byte* memory) {
  if (!slab().release(memory)) cudaFree(memory);
}

}  // namespace

const KernelMemory kManagedMemory = {allocate, release};

bool has_gpu() {
  int count = 0, major = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0 &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         major >= kOldestGpu;
}

void copy_on_gpu(std::byte* to, const std::byte* from, std::size_t bytes) {
  require_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "copy");
  wait_for_gpu();
}

void wait_for_gpu() { require_success(cudaDeviceSynchronize(), "kernel"); }

}  // namespace lossgate::impl
