// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/grpo_block.h"
#include "impl/cuda/grpo_options.h"
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult grpo_step(MicroBatch& micro_batch) {
  const Tensor& like = micro_batch.part.batch.at("log_prob");
  return with_storage(like.dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    GrpoArrays<Stored, Stored> arrays;
    arrays.batch = host.tokens();
    arrays.options = read_grpo_options<float>(host.spec());
    arrays.log_prob = host.field<Stored>("log_prob");
    arrays.old_log_prob = host.field<Stored>("old_log_prob");
    arrays.ref_log_prob = host.field<Stored>("ref_log_prob");
    arrays.advantage = host.field<Stored>("advantage");
    arrays.batch.per_token = host.output<float>("per_token", Dtype::f32, like.extents);
    arrays.gradient = host.output<Stored>("gradient.log_prob", like.dtype, like.extents);
    return host.result(Form::loss(arrays));
  });
}

}  // namespace

std::vector<Implementation> grpo_kernels() {
  return kernel_implementations(
      {.loss = "grpo", .source = {"impl/cuda/grpo_block.h", 1}, .form = "expm1(x) - x, closed"},
      [](auto form, MicroBatch& batch) { return grpo_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
