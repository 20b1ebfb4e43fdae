// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/kernels.h"

#include <utility>

#include "impl/cuda/block.h"

namespace lossgate::impl {
namespace {

std::optional<std::string> stored_in_f64(const Case& c) {
  for (const auto& [name, tensor] : c.batch.fields) {
    if (tensor.dtype == Dtype::f64) return "computes in f32, and " + name + " is stored in f64";
  }
  return std::nullopt;
}

Implementation form_of(const KernelProgram& program, std::string name, Step step, double lanes) {
  Implementation i;
  i.name = std::move(name);
  i.loss = program.loss;
  i.source = program.source;
  i.unsupported = stored_in_f64;
  i.arithmetic = [form = std::string(program.form), order = program.sums, lanes](Dtype) {
    Arithmetic arithmetic = plain_arithmetic(Dtype::f32, form);
    arithmetic.sum = {.roundoff = arithmetic.roundoff, .order = order, .width = lanes};
    return arithmetic;
  };
  i.evaluate = [step = std::move(step), trainer = program.trainer](const LossSignature& signature,
                                                                   const Case& c) {
    return train(signature, c, step, trainer);
  };
  return i;
}

}  // namespace

std::vector<Implementation> kernel_implementations(const KernelProgram& program,
                                                   const KernelSteps& steps) {
  std::vector<Implementation> both;
  both.push_back(form_of(program, "kernel", steps.stepped, kSumLanes));
  both.push_back(form_of(program, "kernel_loop", steps.loop, kPack));
  return both;
}

}  // namespace lossgate::impl
