// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/eager.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace lossgate::impl {
namespace {

/// Numbers of a case up to which a tape of what becomes of each fits in a gigabyte or so.
constexpr std::int64_t kLargestTape = 1 << 22;

std::optional<std::string> too_large_for_a_tape(const Case& c) {
  std::int64_t numbers = 0;
  for (const auto& [name, tensor] : c.batch.fields) numbers += tensor.size();
  if (numbers <= kLargestTape) return std::nullopt;
  return "more than " + std::to_string(kLargestTape) + " numbers for its tape";
}

}  // namespace

Implementation eager_implementation(const EagerProgram& program, std::string name, Step step,
                                    const Trainer& trainer) {
  Implementation i;
  i.name = std::move(name);
  i.loss = program.loss;
  i.source = program.source;
  i.autograd = true;
  i.unsupported = too_large_for_a_tape;
  i.arithmetic = [form = std::string(program.form), sums = program.sums](Dtype dtype) {
    Arithmetic a = plain_arithmetic(dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, form);
    a.sum.order = sums;
    return a;
  };
  i.evaluate = [step = std::move(step), trainer](const LossSignature& signature, const Case& c) {
    return train(signature, c, step, trainer);
  };
  return i;
}

Implementation in_the_fields_format(Implementation i, Step step) {
  i.evaluate = [step = std::move(step)](const LossSignature& signature, const Case& c) {
    return train(signature, c, step);
  };
  i.arithmetic = [](Dtype dtype) {
    return plain_arithmetic(dtype == Dtype::bf16 ? Dtype::f32 : dtype, "");
  };
  return i;
}

Fault fault_of_length(std::string thread, std::string trigger) {
  return {.twin = "eager",
          .thread = std::move(thread),
          .cause = "wrong beyond a length",
          .trigger = std::move(trigger),
          .killers = {"reference_agreement"},
          .of_length = true};
}

Implementation with_fault(Implementation implementation, Fault fault) {
  implementation.fault = std::move(fault);
  return implementation;
}

}  // namespace lossgate::impl
