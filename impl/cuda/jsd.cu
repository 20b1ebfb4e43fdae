// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock)
    jsd_kernel(const __grid_constant__ JsdArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  JsdRow<DeviceBlock, Stored>(block, arrays, blockIdx.x).run();
}

}  // namespace

template <class Stored>
void launch(const JsdArrays<Stored>& arrays, float* loss, Stream stream) {
  launch_count(arrays.batch, stream);
  start("jsd", jsd_kernel<Stored>, arrays.batch.sequences * arrays.batch.tokens,
        block_threads(arrays.vocab), kReductionBytes, stream, arrays);
  launch(arrays.batch, loss, stream);
}

template void launch(const JsdArrays<float>&, float*, Stream);
template void launch(const JsdArrays<Bf16>&, float*, Stream);
template void launch(const JsdArrays<F16>&, float*, Stream);

}  // namespace lossgate::impl
