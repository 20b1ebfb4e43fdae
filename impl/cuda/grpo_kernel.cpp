// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult grpo_step(MicroBatch& micro_batch) {
  return with_storage(micro_batch.part.batch.at("log_prob").dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    return host.result(Form::loss(grpo_arrays<Stored>(host)));
  });
}

}  // namespace

std::vector<Implementation> grpo_kernels() {
  return kernel_implementations(
      {.loss = "grpo", .source = {"impl/cuda/grpo_block.h", 1}, .form = kClosedK3Form},
      [](auto form, MicroBatch& batch) { return grpo_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
