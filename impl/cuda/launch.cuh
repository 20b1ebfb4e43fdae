// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "impl/cuda/device_block.cuh"
#include "impl/cuda/launch.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// The dynamic shared memory of the running block.
__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char memory[];
  return memory;
}

/// Of a BlockReduction: 32 floats, 32 counts.
inline constexpr std::size_t kReductionBytes =
    kWarpThreads * (sizeof(float) + sizeof(std::int64_t));

/// What every block may have without being allowed more.
inline constexpr std::size_t kSharedBytes = 48 * 1024;

/// Of a kernel that ran before, whosever it was: nothing runs after it in this process.
inline bool is_left_behind(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

/// Names what was asked when the error was noticed, and forgets it, so that the next call is not
/// refused for it.
inline void require_success(cudaError_t error, const char* asked) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  const char* const failed =
      is_left_behind(error) ? "cannot start, an earlier kernel failed: " : "failed: ";
  throw Refusal{.argument = asked, .message = std::string(failed) + cudaGetErrorString(error)};
}

/// One block for each of `count` pieces of work, on the caller's stream; waits for nothing.
template <class... Parameters, class... Arguments>
void start(const char* name, void (*kernel)(Parameters...), std::int64_t count, int threads,
           std::size_t shared_bytes, Stream stream, const Arguments&... arguments) {
  if (count == 0) return;
  if (count > 0x7fffffff) {
    throw Refusal{.argument = name,
                  .message = "needs " + std::to_string(count) + " blocks, a grid has 2147483647"};
  }
  require_success(cudaPeekAtLastError(), name);
  kernel<<<static_cast<unsigned>(count), static_cast<unsigned>(threads), shared_bytes, stream>>>(
      arguments...);
  require_success(cudaGetLastError(), name);
}

/// Where blocks take single positions: the first kernel of such a loss.
void launch_count(const TokenArrays& batch, Stream stream);

}  // namespace lossgate::impl
