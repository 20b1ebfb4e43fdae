// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult jsd_step(MicroBatch& micro_batch) {
  return with_storage(micro_batch.part.batch.at("student_logits").dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    return host.result(Form::loss(jsd_arrays<Stored>(host)));
  });
}

}  // namespace

std::vector<Implementation> jsd_kernels() {
  return kernel_implementations(
      {.loss = "jsd",
       .source = {"impl/cuda/jsd_block.h", 1},
       .form = kDivergenceForm,
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return jsd_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
