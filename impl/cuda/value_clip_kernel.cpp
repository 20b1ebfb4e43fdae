// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/host_fields.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/value_block.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult value_clip_step(MicroBatch& micro_batch) {
  const Tensor& like = micro_batch.part.batch.at("value");
  return with_storage(like.dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    ValueArrays<Stored> arrays;
    arrays.batch = host.tokens();
    arrays.options.clip = limit_option<float>(host.spec(), "value_clip");
    arrays.options.around_old = host.spec().choice("clip_form") == "around_old";
    arrays.value = host.field<Stored>("value");
    arrays.old_value = host.field<Stored>("old_value");
    arrays.target = host.field<Stored>("return");
    arrays.batch.per_token = host.output<float>("per_token", Dtype::f32, like.extents);
    arrays.gradient = host.output<Stored>("gradient.value", like.dtype, like.extents);
    return host.result(Form::loss(arrays));
  });
}

}  // namespace

std::vector<Implementation> value_clip_kernels() {
  return kernel_implementations(
      {.loss = "value_clip", .source = {"impl/cuda/value_block.h", 1}},
      [](auto form, MicroBatch& batch) { return value_clip_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
