// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/divergence_options.h"
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/sparse_jsd_block.h"
#include "impl/validate_teacher.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult sparse_jsd_step(MicroBatch& micro_batch) {
  const Tensor& like = micro_batch.part.batch.at("student_logits");
  return with_storage(like.dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    SparseJsdArrays<Stored> arrays;
    arrays.batch = host.tokens();
    arrays.options = read_divergence_options(host.spec());
    arrays.vocab = host.extent(Axis::vocab);
    arrays.support = host.extent(Axis::support);
    arrays.temperature = static_cast<float>(host.spec().number("temperature"));
    arrays.tail_floor = static_cast<float>(host.spec().number("tail_floor"));
    arrays.tail = host.spec().number("tail") != 0.0;
    arrays.student = host.field<Stored>("student_logits");
    arrays.teacher_log_prob = host.field<Stored>("teacher_log_prob");
    arrays.support_token = host.field<std::int64_t>("support_token");
    const Extents positions = {arrays.batch.sequences, arrays.batch.tokens};
    arrays.batch.per_token = host.output<float>("per_token", Dtype::f32, positions);
    arrays.gradient = host.output<Stored>("gradient.student_logits", like.dtype, like.extents);
    return host.result(Form::loss(arrays));
  });
}

}  // namespace

std::vector<Implementation> sparse_jsd_kernels() {
  return kernel_implementations(
      {.loss = "sparse_jsd",
       .source = {"impl/cuda/sparse_jsd_block.h", 1},
       .form = "(x - max) - log S",
       .sums = SumOrder::online,
       .trainer = {.check = &require_valid_sparse_jsd}},
      [](auto form, MicroBatch& batch) { return sparse_jsd_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
