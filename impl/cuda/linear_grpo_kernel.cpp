// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "impl/cuda/host_arrays.h"
#include "impl/cuda/host_layer.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult linear_grpo_step(MicroBatch& micro_batch) {
  HostArrays host(micro_batch, Form::memory());
  LogitsGrpoArrays<float> arrays = logits_grpo_arrays<float>(host);
  const std::int64_t tokens = arrays.grpo.batch.tokens;
  arrays.gradient = host.memory("logits", rows_of(host));
  arrays.logits = {arrays.gradient.data, arrays.gradient.sequence_stride,
                   arrays.gradient.token_stride};

  HostLayer layer(micro_batch, "", true);
  for_each_valid_row(micro_batch.positions, arrays.gradient, tokens,
                     [&](std::size_t at, float* row) { layer.forward(at, row); });
  LossResult result = host.result(Form::loss(arrays));
  for_each_valid_row(micro_batch.positions, arrays.gradient, tokens,
                     [&](std::size_t at, const float* row) { layer.back(at, row); });
  layer.add_gradients(result);
  return result;
}

}  // namespace

std::vector<Implementation> linear_grpo_kernels() {
  return kernel_implementations(
      {.loss = "linear_grpo",
       .source = {"impl/cuda/logits_grpo_block.h", 1},
       .form = kLinearGrpoForm,
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return linear_grpo_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
