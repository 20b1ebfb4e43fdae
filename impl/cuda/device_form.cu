// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/device_form.h"
#include "impl/cuda/gpu.h"
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

std::byte* allocate(std::size_t bytes) {
  void* memory = nullptr;
  require_success(cudaMallocManaged(&memory, bytes == 0 ? 1 : bytes), "memory");
  return static_cast<std::byte*>(memory);
}

void release(std::byte* memory) { cudaFree(memory); }

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
