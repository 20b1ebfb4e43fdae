// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock)
    sparse_jsd_kernel(const __grid_constant__ SparseJsdArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  SparseJsdRow<DeviceBlock, Stored>(block, arrays, blockIdx.x).run();
}

}  // namespace

template <class Stored>
void launch(const SparseJsdArrays<Stored>& arrays, float* loss, Stream stream) {
  const std::size_t bytes = kReductionBytes + sparse_jsd_bytes(arrays.support);
  if (bytes > kSharedBytes) {
    throw Refusal{.argument = "support_token", .message = "has more entries than a block can hold"};
  }
  launch_count(arrays.batch, stream);
  start("sparse_jsd", sparse_jsd_kernel<Stored>, arrays.batch.sequences * arrays.batch.tokens,
        block_threads(arrays.vocab), bytes, stream, arrays);
  launch(arrays.batch, loss, stream);
}

template void launch(const SparseJsdArrays<float>&, float*, Stream);
template void launch(const SparseJsdArrays<Bf16>&, float*, Stream);
template void launch(const SparseJsdArrays<F16>&, float*, Stream);

}  // namespace lossgate::impl
