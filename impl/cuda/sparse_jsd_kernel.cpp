// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"
#include "impl/forms.h"
#include "impl/validate_teacher.h"

namespace lossgate::impl {
namespace {

template <class Form>
LossResult sparse_jsd_step(MicroBatch& micro_batch) {
  return with_storage(micro_batch.part.batch.at("student_logits").dtype, [&]<class Stored>() {
    HostArrays host(micro_batch, Form::memory());
    return host.result(Form::loss(sparse_jsd_arrays<Stored>(host)));
  });
}

}  // namespace

std::vector<Implementation> sparse_jsd_kernels() {
  return kernel_implementations(
      {.loss = "sparse_jsd",
       .source = {"impl/cuda/sparse_jsd_block.h", 1},
       .form = kDivergenceForm,
       .sums = SumOrder::online,
       .trainer = {.check = &require_valid_sparse_jsd}},
      [](auto form, MicroBatch& batch) { return sparse_jsd_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
