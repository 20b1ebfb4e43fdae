// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult value_clip_step(MicroBatch& micro_batch) {
  return with_storage(micro_batch.part.batch.at("value").dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    return host.result(Form::loss(value_arrays<Stored>(host)));
  });
}

}  // namespace

std::vector<Implementation> value_clip_kernels() {
  return kernel_implementations(
      {.loss = "value_clip", .source = {"impl/cuda/value_block.h", 1}},
      [](auto form, MicroBatch& batch) { return value_clip_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
