// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/host_arrays.h"
#include "impl/cuda/launch.h"

/// The launches on the GPU of this machine, for a caller on the host.
namespace lossgate::impl {

/// Whether there is a GPU that the kernels were compiled for.
bool has_gpu();

/// Seen by host and device.
extern const KernelMemory kManagedMemory;

/// Waits for all that was started; throws a Refusal where it failed.
void wait_for_gpu();

/// A copy within the device's memory; waits for it.
void copy_on_gpu(std::byte* to, const std::byte* from, std::size_t bytes);

struct DeviceForm {
  static const KernelMemory& memory() { return kManagedMemory; }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    copy_on_gpu(to, from, bytes);
  }

  template <class Arrays>
  static float loss(const Arrays& arrays) {
    LaidOut total(Dtype::f32, {1, 1}, Layout::contiguous, kManagedMemory);
    launch(arrays, total.as<float>().data, nullptr);
    wait_for_gpu();
    return *total.as<float>().data;
  }
};

}  // namespace lossgate::impl
