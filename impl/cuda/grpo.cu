// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock, 1)
    grpo_kernel(const __grid_constant__ GrpoArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  GrpoSequence<DeviceBlock, Stored>(block, arrays, blockIdx.x).run();
}

}  // namespace

template <class Stored>
void launch(const GrpoArrays<Stored>& arrays, float* loss, Stream stream) {
  start("grpo", grpo_kernel<Stored>, arrays.batch.sequences, block_threads(arrays.batch.tokens),
        kReductionBytes, stream, arrays);
  launch(arrays.batch, loss, stream);
}

template void launch(const GrpoArrays<float>&, float*, Stream);
template void launch(const GrpoArrays<Bf16>&, float*, Stream);
template void launch(const GrpoArrays<F16>&, float*, Stream);

}  // namespace lossgate::impl
