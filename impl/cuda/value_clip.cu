// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock, 1)
    value_clip_kernel(const __grid_constant__ ValueArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  value_sequence(block, arrays, blockIdx.x);
}

}  // namespace

template <class Stored>
void launch(const ValueArrays<Stored>& arrays, float* loss, Stream stream) {
  start("value_clip", value_clip_kernel<Stored>, arrays.batch.sequences,
        block_threads(arrays.batch.tokens), kReductionBytes, stream, arrays);
  launch(arrays.batch, loss, stream);
}

template void launch(const ValueArrays<float>&, float*, Stream);
template void launch(const ValueArrays<Bf16>&, float*, Stream);
template void launch(const ValueArrays<F16>&, float*, Stream);

}  // namespace lossgate::impl
