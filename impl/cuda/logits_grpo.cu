// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/launch.cuh"

namespace lossgate::impl {
namespace {

template <class Stored>
using Row = LogitsGrpoRow<DeviceBlock, Stored>;

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock)
    logits_grpo_kernel(const __grid_constant__ LogitsGrpoArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  Row<Stored>(block, arrays, blockIdx.x).run();
}

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock)
    taken_log_prob_kernel(const __grid_constant__ LogitsGrpoArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  Row<Stored>(block, arrays, blockIdx.x).take_log_prob();
}

template <class Stored>
__global__ void __launch_bounds__(kLargestBlock)
    logits_gradient_kernel(const __grid_constant__ LogitsGrpoArrays<Stored> arrays) {
  DeviceBlock block(shared_memory());
  Row<Stored>(block, arrays, blockIdx.x).write_logits_gradient();
}

}  // namespace

template <class Stored>
void launch(const LogitsGrpoArrays<Stored>& arrays, float* loss, Stream stream) {
  const TokenArrays& batch = arrays.grpo.batch;
  const auto launch_rows = [&](const char* name, auto kernel) {
    start(name, kernel, batch.sequences * batch.tokens, block_threads(arrays.vocab),
          kReductionBytes, stream, arrays);
  };
  if (!arrays.grpo.options.sequence_level) {
    launch_count(batch, stream);
    launch_rows("logits_grpo", logits_grpo_kernel<Stored>);
    return launch(batch, loss, stream);
  }
  launch_rows("taken_log_prob", taken_log_prob_kernel<Stored>);
  launch(arrays.grpo, loss, stream);
  if (arrays.gradient.data) launch_rows("logits_gradient", logits_gradient_kernel<Stored>);
}

template void launch(const LogitsGrpoArrays<float>&, float*, Stream);
template void launch(const LogitsGrpoArrays<Bf16>&, float*, Stream);
template void launch(const LogitsGrpoArrays<F16>&, float*, Stream);

}  // namespace lossgate::impl
