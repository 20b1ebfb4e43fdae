// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock)
    log_prob_kernel(const __grid_constant__ LogProbArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  log_prob_row(block, arrays, blockIdx.x);
}

}  // namespace

template <class Stored>
void launch(const LogProbArrays<Stored>& arrays, float* loss, Stream stream) {
  start("log_prob", log_prob_kernel<Stored>, arrays.batch.sequences * arrays.batch.tokens,
        block_threads(arrays.vocab), kReductionBytes, stream, arrays);
  launch(arrays.batch, loss, stream);
}

template void launch(const LogProbArrays<float>&, float*, Stream);
template void launch(const LogProbArrays<Bf16>&, float*, Stream);
template void launch(const LogProbArrays<F16>&, float*, Stream);

}  // namespace lossgate::impl
