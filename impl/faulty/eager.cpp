// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/eager.h"

#include <utility>

namespace lossgate::impl {

Implementation eager_implementation(const EagerProgram& program, std::string name, Step step,
                                    const Trainer& trainer) {
  Implementation i;
  i.name = std::move(name);
  i.loss = program.loss;
  i.source = program.source;
  i.unsupported = [](const Case&) { return std::nullopt; };
  i.arithmetic = [form = std::string(program.form)](Dtype dtype) {
    return plain_arithmetic(dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, form);
  };
  i.evaluate = [step = std::move(step), trainer](const LossSignature& signature, const Case& c) {
    return train(signature, c, step, trainer);
  };
  return i;
}

Implementation with_fault(Implementation implementation, Fault fault) {
  implementation.fault = std::move(fault);
  return implementation;
}

}  // namespace lossgate::impl
