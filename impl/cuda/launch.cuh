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

/// Names what was asked when the error was noticed. One that does not go away when it is read was
/// left behind by a kernel that ran before, whosever that was.
inline void require_success(cudaError_t error, const char* asked) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  const bool left_behind = cudaGetLastError() != cudaSuccess;
  throw Refusal{.argument = asked,
                .message = std::string(left_behind ? "cannot start, an earlier kernel failed: "
                                                   : "failed: ") +
                           cudaGetErrorString(error)};
}

/// One block for each of `count` pieces of work, on the caller's stream; waits for nothing.
template <class... Parameters, class... Arguments>
void start(const char* name, void (*kernel)(Parameters...), std::int64_t count, int threads,
           std::size_t shared_bytes, Stream stream, const Arguments&... arguments) {
  if (count == 0) return;
  require_success(cudaPeekAtLastError(), name);
  if (count > 0x7fffffff) {
    throw Refusal{.argument = name,
                  .message = "needs " + std::to_string(count) + " blocks, a grid has 2147483647"};
  }
  kernel<<<static_cast<unsigned>(count), static_cast<unsigned>(threads), shared_bytes, stream>>>(
      arguments...);
  require_success(cudaGetLastError(), name);
}

/// Where blocks take single positions: the first kernel of such a loss.
void launch_count(const TokenArrays& batch, Stream stream);

}  // namespace lossgate::impl
