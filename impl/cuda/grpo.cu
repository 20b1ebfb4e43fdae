// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class LogProb, class Stored>
__global__ void __launch_bounds__(kLargestBlock, 1)
    grpo_kernel(const __grid_constant__ GrpoArrays<LogProb, Stored> arrays) {
  DeviceBlock block(shared_memory());
  GrpoSequence<DeviceBlock, LogProb, Stored>(block, arrays, blockIdx.x).run();
}

}  // namespace

template <class LogProb, class Stored>
void launch(const GrpoArrays<LogProb, Stored>& arrays, float* loss, Stream stream) {
  start("grpo", grpo_kernel<LogProb, Stored>, arrays.batch.sequences,
        block_threads(arrays.batch.tokens), kReductionBytes, stream, arrays);
  launch(arrays.batch, loss, stream);
}

template void launch(const GrpoArrays<float, float>&, float*, Stream);
template void launch(const GrpoArrays<Bf16, Bf16>&, float*, Stream);
template void launch(const GrpoArrays<F16, F16>&, float*, Stream);
template void launch(const GrpoArrays<float, Bf16>&, float*, Stream);
template void launch(const GrpoArrays<float, F16>&, float*, Stream);

}  // namespace lossgate::impl
