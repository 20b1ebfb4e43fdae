// SPDX-License-Identifier: Apache-2.0
#include "properties/advice.h"

#include <cmath>
#include <string>

#include "properties/causes.h"
#include "properties/room.h"

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
  if (outcome.violation && gives_no_result(outcome.violation->cause)) return outcome;
  const bool judged = advice->judges(evaluation.arithmetic());
  if (property.precedence == Precedence::formula && judged) {
    return skipped("the advisory reference is the same function");
  }
  if (!outcome.violation) return outcome;
  const bool hangs = property.precedence == Precedence::formula ||
                     property.precedence == Precedence::yields || outcome.violation->allowed > 0.0;
  if (property.precedence != Precedence::finite) {
    return judged || !hangs ? outcome : note("advisory: " + outcome.violation->detail);
  }
  if (loss_is_finite(evaluation)) return outcome;
  if (!overflows_by_itself(evaluation)) return note("advisory: " + outcome.violation->detail);
  outcome.violation->detail =
      "in f64 the same function has numbers for this case and for one nearby, and none is large";
  return outcome;
}

}  // namespace lossgate::properties
