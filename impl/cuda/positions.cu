// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

__global__ void __launch_bounds__(kLargestBlock)
    count_kernel(const __grid_constant__ TokenArrays batch) {
  DeviceBlock block(shared_memory());
  count_sequence(block, batch, blockIdx.x);
}

__global__ void __launch_bounds__(kLargestBlock)
    sum_kernel(const __grid_constant__ TokenArrays batch, float* loss) {
  DeviceBlock block(shared_memory());
  sum_terms(block, batch, loss);
}

}  // namespace

void launch_count(const TokenArrays& batch, Stream stream) {
  start("count", count_kernel, batch.sequences, block_threads(batch.tokens), kReductionBytes,
        stream, batch);
}

void launch(const TokenArrays& batch, float* loss, Stream stream) {
  start("sum", sum_kernel, 1, block_threads(batch.sequences * batch.tokens), kReductionBytes,
        stream, batch, loss);
}

}  // namespace lossgate::impl
