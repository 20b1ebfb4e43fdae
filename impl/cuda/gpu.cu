// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/gpu.h"
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {

OnGpu::OnGpu(int device) {
  require_success(cudaGetDevice(&before_), "device");
  int major = 0, minor = 0;
  require_success(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "device");
  require_success(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
                  "device");
  require_supported_gpu(major, minor);
  require_success(cudaSetDevice(device), "device");
}

OnGpu::~OnGpu() { cudaSetDevice(before_); }

}  // namespace lossgate::impl
