// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/divergence_options.h"
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/jsd_block.h"
#include "impl/cuda/kernel_forms.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult jsd_step(MicroBatch& micro_batch) {
  const Tensor& like = micro_batch.part.batch.at("student_logits");
  return with_storage(like.dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    JsdArrays<Stored> arrays;
    arrays.batch = host.tokens();
    arrays.options = read_divergence_options(host.spec());
    arrays.options.soft = host.spec().number("soft_cross_entropy") != 0.0;
    arrays.vocab = host.extent(Axis::vocab);
    arrays.temperature = static_cast<float>(host.spec().number("temperature"));
    arrays.student = host.field<Stored>("student_logits");
    arrays.teacher = host.field<Stored>("teacher_logits");
    const Extents positions = {arrays.batch.sequences, arrays.batch.tokens};
    arrays.batch.per_token = host.output<float>("per_token", Dtype::f32, positions);
    arrays.gradient = host.output<Stored>("gradient.student_logits", like.dtype, like.extents);
    return host.result(Form::loss(arrays));
  });
}

}  // namespace

std::vector<Implementation> jsd_kernels() {
  return kernel_implementations(
      {.loss = "jsd",
       .source = {"impl/cuda/jsd_block.h", 1},
       .form = "(x - max) - log S",
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return jsd_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
