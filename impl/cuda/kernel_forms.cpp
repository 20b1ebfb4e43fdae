// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/kernel_forms.h"

namespace lossgate::impl {
namespace {

std::optional<std::string> stored_in_f64(const Case& c) {
  for (const auto& [name, tensor] : c.batch.fields) {
    if (tensor.dtype == Dtype::f64) return "computes in f32, and " + name + " is stored in f64";
  }
  return std::nullopt;
}

}  // namespace

Implementation kernel_implementation(const KernelProgram& program, std::string name, int lanes,
                                     Step step) {
  Implementation i;
  i.name = std::move(name);
  i.loss = program.loss;
  i.source = program.source;
  i.unsupported = stored_in_f64;
  i.arithmetic = [form = std::string(program.form), order = program.sums, lanes](Dtype) {
    Arithmetic arithmetic = plain_arithmetic(Dtype::f32, form);
    arithmetic.sum = {
        .roundoff = arithmetic.roundoff, .order = order, .width = static_cast<double>(lanes)};
    return arithmetic;
  };
  i.evaluate = [step = std::move(step), trainer = program.trainer](const LossSignature& signature,
                                                                   const Case& c) {
    return train(signature, c, step, trainer);
  };
  return i;
}

}  // namespace lossgate::impl
