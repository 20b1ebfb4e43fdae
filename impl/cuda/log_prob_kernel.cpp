// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult log_prob_step(MicroBatch& micro_batch) {
  return with_storage(micro_batch.part.batch.at("logits").dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    return host.result(Form::loss(log_prob_arrays<Stored>(host)));
  });
}

}  // namespace

std::vector<Implementation> log_prob_kernels() {
  return kernel_implementations(
      {.loss = "log_prob",
       .source = {"impl/cuda/log_prob_block.h", 1},
       .form = kSoftmaxForm,
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return log_prob_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
