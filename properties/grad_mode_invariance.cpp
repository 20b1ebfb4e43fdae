// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "properties/agreement.h"
#include "properties/checks.h"
#include "properties/side_effects.h"

namespace lossgate::properties {
namespace {

constexpr const char* kState = "state between calls";
constexpr const char* kFrozen = "depends on requires_grad";

/// A way to go about the gradients, and what it means where the answer is another one then.
struct Way {
  const Transform* transform;
  const char* detail;
  const char* cause;
};

constexpr Way kWays[] = {
    {&kWithoutGradients, "asked for no gradient (torch.no_grad)", kFrozen},
    {&kFirstAlone, "asked for the gradient of its first input alone", kFrozen},
    {&kSecondAlone, "asked for the gradient of its second input alone", kFrozen},
    {&kThirdAlone, "asked for the gradient of its third input alone", kFrozen},
    {&kFirstFrozen, "asked for all gradients but that of its first input", kFrozen},
    {&kSecondFrozen, "asked for all gradients but that of its second input", kFrozen},
    {&kThirdFrozen, "asked for all gradients but that of its third input", kFrozen},
    {&kEvaluatedBetween, "with an evaluation of other data before its backward", kState},
    {&kForwardsBetween, "with two forwards of other data before its backward", kState},
    {&kSummedLosses, "with the loss of other data added before its backward", kState},
    {&kBackwardTwice, "in a second backward of the same graph (retain_graph)", kState},
    {&kBackwardByRows, "with every second sequence's terms in a backward of their own",
     "wrong upstream factor"},
    {&kUpdated,
     "after a step of other parameters, which were then changed in place (optimizer.step)", kState},
    {&kUnderAutocast, "with its forward inside torch.autocast", "narrowed by autocast"},
};

/// The answer, with the gradients that nobody asked for as they were when somebody did.
LossResult completed(Evaluation& evaluation, GradMode mode, LossResult answer) {
  for (const OutputInfo& info : evaluation.study().outputs()) {
    if (info.kind != OutputKind::gradient) continue;
    if (asks_gradient(evaluation.signature(), mode, info.field)) continue;
    for (Output& output : answer.outputs) {
      if (output.name == info.name) output.tensor = *evaluation.actual().find(info.name);
    }
  }
  return answer;
}

/// What comes of an answer to the case as such, or to the same asked in another mode.
Outcome judge(Evaluation& evaluation, GradMode mode, const LossResult& answer) {
  if (auto violation = malformed(evaluation.study(), answer)) return violated(*violation);
  const LossResult actual = completed(evaluation, mode, answer);
  // The same answer, whatever it is worth.
  if (!first_difference(evaluation.study(), evaluation.actual(), actual)) return held();
  return compare(
      {.study = evaluation.study(), .arithmetic = evaluation.arithmetic(), .actual = actual});
}

Outcome ask(Evaluation& evaluation, const Way& way) {
  const Case& asked = evaluation.study().transformed(*way.transform)->c;
  const std::string how = way.detail;
  const LossResult& answer = evaluation.actual(*way.transform);
  if (auto violation = side_effect(answer); violation && !side_effect(evaluation.actual())) {
    violation->detail = how + ": " + violation->detail;
    return violated(*violation);
  }
  Outcome outcome = judge(evaluation, asked.grad_mode, answer);
  auto& violation = outcome.violation;
  if (!violation || violation->place.output == impl::kNotComputed) return outcome;
  violation->detail = how + (violation->detail.empty() ? std::string(" it is another one")
                                                       : ": " + violation->detail);
  // Whose answers change from call to call needs no other mode for it.
  const bool changes = judge(evaluation, GradMode::all, evaluation.call(evaluation.study().whole()))
                           .violation.has_value();
  violation->cause = changes ? kState : way.cause;
  return outcome;
}

}  // namespace

Outcome grad_mode_invariance(Evaluation& evaluation) {
  if (!evaluation.implementation().autograd) return skipped("its gradients come with its loss");
  const bool modes = evaluation.implementation().contract.grad_modes;
  if (!modes && !evaluation.signature().autocast) return skipped("contract");
  if (auto outcome = incomparable(evaluation)) return *outcome;
  std::optional<Outcome> all;
  Outcome unasked = modes ? vacuous("no trigger") : skipped("contract");
  for (const Way& way : kWays) {
    if (!modes && way.transform != &kUnderAutocast) continue;  // another promise
    if (!evaluation.study().transformed(*way.transform)) continue;
    Outcome outcome = ask(evaluation, way);
    if (outcome.violation && outcome.violation->place.output == impl::kNotComputed) {
      unasked = std::move(outcome);  // who does not compute one way is asked the others
      continue;
    }
    if (outcome.violation) return outcome;
    if (!all || outcome.worst_ratio > all->worst_ratio) all = std::move(outcome);
  }
  return all ? *all : unasked;
}

}  // namespace lossgate::properties
