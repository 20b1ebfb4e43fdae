// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "impl/cuda/grpo_options.h"
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/host_layer.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/logits_grpo_block.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult linear_grpo_step(MicroBatch& micro_batch) {
  HostArrays host(micro_batch, Form::memory());
  LogitsGrpoArrays<float> arrays;
  TokenArrays& batch = arrays.grpo.batch;
  batch = host.tokens();
  arrays.grpo.options = read_grpo_options<float>(host.spec());
  arrays.vocab = host.extent(Axis::vocab);
  arrays.temperature = static_cast<float>(host.spec().number("temperature"));
  arrays.labels = batch.validity.labels;
  arrays.grpo.old_log_prob = host.widened_field("old_log_prob");
  arrays.grpo.ref_log_prob = host.widened_field("ref_log_prob");
  arrays.grpo.advantage = host.widened_field("advantage");
  const Extents positions = {batch.sequences, batch.tokens};
  const auto memory = [&](Extents extents) {
    return host.output<float>("", Dtype::f32, std::move(extents));
  };
  batch.per_token = host.output<float>("per_token", Dtype::f32, positions);
  arrays.log_prob = memory(positions);
  arrays.shift = memory(positions);
  arrays.log_sum = memory(positions);
  arrays.grpo.log_prob = {arrays.log_prob.data, arrays.log_prob.sequence_stride,
                          arrays.log_prob.token_stride};
  arrays.grpo.gradient = memory(positions);
  arrays.gradient = memory({batch.sequences, batch.tokens, arrays.vocab});
  arrays.logits = {arrays.gradient.data, arrays.gradient.sequence_stride,
                   arrays.gradient.token_stride};

  HostLayer layer(micro_batch, "", true);
  for_each_valid_row(micro_batch.positions, arrays.gradient, batch.tokens,
                     [&](std::size_t at, float* row) { layer.forward(at, row); });
  LossResult result = host.result(Form::loss(arrays));
  for_each_valid_row(micro_batch.positions, arrays.gradient, batch.tokens,
                     [&](std::size_t at, const float* row) { layer.back(at, row); });
  layer.add_gradients(result);
  return result;
}

}  // namespace

std::vector<Implementation> linear_grpo_kernels() {
  return kernel_implementations(
      {.loss = "linear_grpo",
       .source = {"impl/cuda/logits_grpo_block.h", 1},
       .form = "expm1(x) - x, closed with (x - max) - log S",
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return linear_grpo_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
