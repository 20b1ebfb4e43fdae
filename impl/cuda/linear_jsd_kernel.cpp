// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "impl/cuda/host_arrays.h"
#include "impl/cuda/host_layer.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/named_arrays.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

/// The divergence in chunks: logits of one sequence at a time, whose gradient is written over the
/// student's and taken back through its layer before the next.
template <class Form>
LossResult linear_jsd_step(MicroBatch& micro_batch) {
  HostArrays host(micro_batch, Form::memory());
  const TokenArrays batch = tokens_of(host);
  const std::int64_t vocab = host.extent(Axis::vocab);
  const Extents chunk = {1, batch.tokens, vocab};
  const Strided<float> student = host.memory("student_logits", chunk),
                       teacher = host.memory("teacher_logits", chunk);

  JsdArrays<float> arrays;
  arrays.options = read_divergence_options(host.spec());
  arrays.vocab = vocab;
  arrays.temperature = temperature_of(host);
  arrays.student = {student.data, student.sequence_stride, student.token_stride};
  arrays.teacher = {teacher.data, teacher.sequence_stride, teacher.token_stride};
  arrays.gradient = student;

  HostLayer student_layer(micro_batch, "student_", false);
  const HostLayer teacher_layer(micro_batch, "teacher_", false);
  for (std::int64_t s = 0; s < batch.sequences; ++s) {
    const auto each_row = [&](const Strided<float>& rows, auto&& work) {
      for (std::int64_t t = 0; t < batch.tokens; ++t) {
        const auto position = static_cast<std::size_t>(s * batch.tokens + t);
        if (micro_batch.positions.valid[position] != 0) {
          work(position, rows.data + t * rows.token_stride);
        }
      }
    };
    each_row(student, [&](std::size_t at, float* row) { student_layer.forward(at, row); });
    each_row(teacher, [&](std::size_t at, float* row) { teacher_layer.forward(at, row); });
    arrays.batch = chunk_of(batch, s);
    Form::loss(arrays);
    each_row(student, [&](std::size_t at, const float* row) { student_layer.back(at, row); });
  }
  LossResult result = host.result(Form::loss(batch));
  student_layer.add_gradients(result);
  return result;
}

}  // namespace

std::vector<Implementation> linear_jsd_kernels() {
  return kernel_implementations(
      {.loss = "linear_jsd",
       .source = {"impl/cuda/jsd_block.h", 1},
       .form = kDivergenceForm,
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return linear_jsd_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
