// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/divergence_options.h"
#include "impl/cuda/grpo_options.h"
#include "impl/cuda/jsd_block.h"
#include "impl/cuda/log_prob_block.h"
#include "impl/cuda/logits_grpo_block.h"
#include "impl/cuda/sparse_jsd_block.h"
#include "impl/cuda/value_block.h"

/// What each kernel is told, found under the names of the loss's fields and options by whoever has
/// them: a case of the gate (HostArrays), or a caller's memory (CallArrays). A Named has
///   spec(), extent(axis)
///   tokens()                        what all kernels have in common, but for per_token
///   field<T>(name)                  an input
///   widened_field(name)             an input of one number a position or slot, in f32
///   weight(name)                    the same, absent where no gradient is asked for
///   output<T>(name, extents)        an output
///   gradient<T>(field, extents)     absent where it is not asked for
///   memory(name, extents)           numbers that nobody asks for afterwards
namespace lossgate::impl {

template <class Named>
Extents positions_of(const Named& named) {
  return {named.extent(Axis::sequences), named.extent(Axis::tokens)};
}

template <class Named>
Extents rows_of(const Named& named) {
  return {named.extent(Axis::sequences), named.extent(Axis::tokens), named.extent(Axis::vocab)};
}

template <class Named>
TokenArrays tokens_of(Named& named, const char* per_token = "per_token") {
  TokenArrays batch = named.tokens();
  batch.per_token = named.template output<float>(per_token, positions_of(named));
  return batch;
}

template <class Named>
float temperature_of(const Named& named) {
  return static_cast<float>(named.spec().number("temperature"));
}

template <class Stored, class Named>
GrpoArrays<Stored> grpo_arrays(Named& named) {
  GrpoArrays<Stored> arrays;
  arrays.batch = tokens_of(named);
  arrays.options = read_grpo_options<float>(named.spec());
  arrays.log_prob = named.template field<Stored>("log_prob");
  arrays.old_log_prob = named.template field<Stored>("old_log_prob");
  arrays.ref_log_prob = named.template field<Stored>("ref_log_prob");
  arrays.advantage = named.template field<Stored>("advantage");
  arrays.gradient = named.template gradient<Stored>("log_prob", positions_of(named));
  return arrays;
}

template <class Stored, class Named>
ValueArrays<Stored> value_arrays(Named& named) {
  ValueArrays<Stored> arrays;
  arrays.batch = tokens_of(named);
  arrays.options.clip = limit_option<float>(named.spec(), "value_clip");
  arrays.options.around_old = named.spec().choice("clip_form") == "around_old";
  arrays.value = named.template field<Stored>("value");
  arrays.old_value = named.template field<Stored>("old_value");
  arrays.target = named.template field<Stored>("return");
  arrays.gradient = named.template gradient<Stored>("value", positions_of(named));
  return arrays;
}

template <class Stored, class Named>
LogProbArrays<Stored> log_prob_arrays(Named& named) {
  LogProbArrays<Stored> arrays;
  arrays.batch = tokens_of(named, "log_prob");
  arrays.vocab = named.extent(Axis::vocab);
  arrays.temperature = temperature_of(named);
  arrays.labels = arrays.batch.validity.labels;
  arrays.logits = named.template field<Stored>("logits");
  arrays.log_prob_weight = named.weight("log_prob_weight");
  arrays.entropy_weight = named.weight("entropy_weight");
  arrays.entropy = named.template output<float>("entropy", positions_of(named));
  arrays.gradient = named.template gradient<Stored>("logits", rows_of(named));
  return arrays;
}

template <class Stored, class Named>
JsdArrays<Stored> jsd_arrays(Named& named) {
  JsdArrays<Stored> arrays;
  arrays.batch = tokens_of(named);
  arrays.options = read_divergence_options(named.spec());
  arrays.options.soft = named.spec().number("soft_cross_entropy") != 0.0;
  arrays.vocab = named.extent(Axis::vocab);
  arrays.temperature = temperature_of(named);
  arrays.student = named.template field<Stored>("student_logits");
  arrays.teacher = named.template field<Stored>("teacher_logits");
  arrays.gradient = named.template gradient<Stored>("student_logits", rows_of(named));
  return arrays;
}

template <class Stored, class Named>
SparseJsdArrays<Stored> sparse_jsd_arrays(Named& named) {
  SparseJsdArrays<Stored> arrays;
  arrays.batch = tokens_of(named);
  arrays.options = read_divergence_options(named.spec());
  arrays.vocab = named.extent(Axis::vocab);
  arrays.support = named.extent(Axis::support);
  arrays.temperature = temperature_of(named);
  arrays.tail_floor = static_cast<float>(named.spec().number("tail_floor"));
  arrays.tail = named.spec().number("tail") != 0.0;
  arrays.student = named.template field<Stored>("student_logits");
  arrays.teacher_log_prob = named.widened_field("teacher_log_prob");
  arrays.support_token = named.template field<std::int64_t>("support_token");
  arrays.gradient = named.template gradient<Stored>("student_logits", rows_of(named));
  return arrays;
}

/// But for the logits and their gradient, which may lie in the same memory.
template <class Stored, class Named>
LogitsGrpoArrays<Stored> logits_grpo_arrays(Named& named) {
  LogitsGrpoArrays<Stored> arrays;
  const Extents positions = positions_of(named);
  arrays.grpo.batch = tokens_of(named);
  arrays.grpo.options = read_grpo_options<float>(named.spec());
  arrays.grpo.old_log_prob = named.widened_field("old_log_prob");
  arrays.grpo.ref_log_prob = named.widened_field("ref_log_prob");
  arrays.grpo.advantage = named.widened_field("advantage");
  arrays.grpo.gradient = named.memory("log_prob_gradient", positions);
  arrays.vocab = named.extent(Axis::vocab);
  arrays.temperature = temperature_of(named);
  arrays.labels = arrays.grpo.batch.validity.labels;
  arrays.log_prob = named.memory("log_prob", positions);
  arrays.shift = named.memory("shift", positions);
  arrays.log_sum = named.memory("log_sum", positions);
  arrays.grpo.log_prob = {arrays.log_prob.data, arrays.log_prob.sequence_stride,
                          arrays.log_prob.token_stride};
  return arrays;
}

}  // namespace lossgate::impl
