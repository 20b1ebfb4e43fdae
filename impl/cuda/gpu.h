// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reference/spec/result.h"

namespace lossgate::impl {

/// sm_80, of which the kernels are compiled first.
inline constexpr int kOldestGpu = 8;

/// Refuses a GPU of a compute capability that is older than any the kernels were compiled for.
inline void require_supported_gpu(int major, int minor) {
  if (major >= kOldestGpu) return;
  throw Refusal{.argument = "device",
                .message = "has compute capability " + std::to_string(major) + "." +
                           std::to_string(minor) + ", the kernels need " +
                           std::to_string(kOldestGpu) + ".0 or newer"};
}

/// Makes a GPU the current one, and afterwards the one that was. Refuses one that is not there, or
/// too old.
class OnGpu {
 public:
  explicit OnGpu(int device);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

}  // namespace lossgate::impl
