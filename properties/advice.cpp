// SPDX-License-Identifier: Apache-2.0
#include "properties/advice.h"

#include <cmath>
#include <string>

namespace lossgate::properties {
namespace {

bool loss_is_finite(Evaluation& evaluation) {
  const LossResult& result = evaluation.actual();
  const Tensor* loss = result.refusal ? nullptr : result.find("loss");
  return loss && std::isfinite(loss->at(0));
}

}  // namespace

Outcome as_advised(const Property& property, Evaluation& evaluation, Outcome outcome) {
  const auto& advice = evaluation.study().loss().advice;
  if (!advice) return outcome;
  // What is no answer is none beside any reference.
  const std::string cause = outcome.violation ? outcome.violation->cause : "";
  if (cause == "legal input refused" || cause == "malformed result") return outcome;
  const bool judged = advice->judges(evaluation.arithmetic());
  if (property.precedence == Precedence::formula && judged) {
    return skipped("the advisory reference is the same function");
  }
  if (!outcome.violation) return outcome;
  const bool hangs = property.precedence == Precedence::formula ||
                     property.precedence == Precedence::yields || outcome.violation->allowed > 0.0;
  const bool stands =
      property.precedence == Precedence::finite ? loss_is_finite(evaluation) : judged || !hangs;
  return stands ? outcome : note("advisory: " + outcome.violation->detail);
}

}  // namespace lossgate::properties
