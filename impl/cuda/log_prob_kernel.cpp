// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/log_prob_block.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult log_prob_step(MicroBatch& micro_batch) {
  const Tensor& like = micro_batch.part.batch.at("logits");
  return with_storage(like.dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    LogProbArrays<Stored> arrays;
    arrays.batch = host.tokens();
    arrays.vocab = host.extent(Axis::vocab);
    arrays.temperature = static_cast<float>(host.spec().number("temperature"));
    arrays.labels = arrays.batch.validity.labels;
    arrays.logits = host.field<Stored>("logits");
    arrays.log_prob_weight = host.field<Stored>("log_prob_weight");
    arrays.entropy_weight = host.field<Stored>("entropy_weight");
    const Extents positions = {arrays.batch.sequences, arrays.batch.tokens};
    arrays.batch.per_token = host.output<float>("log_prob", Dtype::f32, positions);
    arrays.entropy = host.output<float>("entropy", Dtype::f32, positions);
    arrays.gradient = host.output<Stored>("gradient.logits", like.dtype, like.extents);
    return host.result(Form::loss(arrays));
  });
}

}  // namespace

std::vector<Implementation> log_prob_kernels() {
  return kernel_implementations(
      {.loss = "log_prob",
       .source = {"impl/cuda/log_prob_block.h", 1},
       .form = "(x - max) - log S",
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return log_prob_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
