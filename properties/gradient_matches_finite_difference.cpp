// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <future>
#include <utility>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

using reference::Real;
using reference::Tracked;

/// The loss of a study under an arithmetic.
Tracked expected_loss(CaseStudy& study, const Arithmetic& arithmetic) {
  Tracked loss;
  const auto visit = [&](std::size_t o, std::int64_t, const Tracked& x) {
    if (study.outputs()[o].kind == OutputKind::loss) loss = x;
  };
  study.for_each_expected(arithmetic, false, visit, CaseStudy::Wanted::values);
  return loss;
}

/// The implementation's loss one step away; nothing where it gives no values.
std::optional<double> loss_after(Evaluation& evaluation, const Transform& step,
                                 std::optional<Violation>& unanswered) {
  CaseStudy& moved = *evaluation.study().derived(step);
  const LossResult& result = evaluation.actual(step);
  unanswered = malformed(moved, result);
  if (unanswered) return std::nullopt;
  const double loss = result.find("loss")->at(0);
  evaluation.forget(step);
  evaluation.forget_derived();
  return loss;
}

/// The formula's losses a step ahead and a step back, side by side where that takes long.
std::pair<Tracked, Tracked> expected_at_ends(Evaluation& evaluation) {
  CaseStudy& study = evaluation.study();
  CaseStudy &ahead = *study.derived(kStepForward), &back = *study.derived(kStepBackward);
  const bool at_once = study.large() && study.concurrent();
  const auto where = at_once ? std::launch::async : std::launch::deferred;
  auto high = std::async(where, [&] { return expected_loss(ahead, evaluation.arithmetic()); });
  const Tracked low = expected_loss(back, evaluation.arithmetic());
  return {high.get(), low};
}

/// How far the step moves an entry of a differentiable field: an infinity stays where it is.
Real step_of(const std::string& field, std::int64_t i, const Case& forward, const Case& backward) {
  const double to = forward.batch.at(field).at(i), from = backward.batch.at(field).at(i);
  return to == from ? 0.0L : static_cast<Real>(to) - from;
}

/// The implementation's own gradient times the step.
Real own_slope(Evaluation& evaluation, const Case& forward, const Case& backward) {
  Real sum = 0.0L;
  for (const OutputInfo& output : evaluation.study().outputs()) {
    if (output.kind != OutputKind::gradient) continue;
    const Tensor& gradient = *evaluation.actual().find(output.name);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const Real step = step_of(output.field, i, forward, backward);
      if (step != 0.0L) sum += step * gradient.at(i);
    }
  }
  return sum;
}

/// Whether neither the implementation's loss moves by more than one loss may err, nor its gradient
/// says so. A hundredth of the way moves errors by little: then there is no digit at the ends, and
/// the formula need not be asked there.
bool stands_still(Evaluation& evaluation, const OutputInfo& loss, double moved, Real slope) {
  CaseStudy& study = evaluation.study();
  const double error = largest_accepted(evaluation.arithmetic(), loss,
                                        expected_loss(study, evaluation.arithmetic()));
  return std::fabs(moved) < error &&
         std::fabs(static_cast<double>(slope)) < std::fabs(study.whole().upstream) * error;
}

/// The formula's gradient times the step, and what an implementation's may be off by.
struct Directional {
  Real slope = 0.0L;
  double error = 0.0;
};

Directional expected_slope(Evaluation& evaluation, const Case& forward, const Case& backward) {
  CaseStudy& study = evaluation.study();
  Directional sum;
  study.for_each_expected(evaluation.arithmetic(), false,
                          [&](std::size_t o, std::int64_t i, const Tracked& x) {
                            const OutputInfo& output = study.outputs()[o];
                            if (output.kind != OutputKind::gradient) return;
                            const Real step = step_of(output.field, i, forward, backward);
                            if (step == 0.0L) return;
                            sum.slope += step * x.v;
                            sum.error += static_cast<double>(std::fabs(step)) *
                                         largest_accepted(evaluation.arithmetic(), output, x);
                          });
  return sum;
}

}  // namespace

/// The central difference of the implementation's own forward against its own backward. What such a
/// difference leaves out (curvature, a kink between the two points) is the same for the reference,
/// which computes it: its own difference less its own gradient along the step.
Outcome gradient_matches_finite_difference(Evaluation& evaluation) {
  if (auto outcome = incomparable(evaluation)) return *outcome;
  CaseStudy& study = evaluation.study();
  const double upstream = study.whole().upstream;
  if (upstream == 0.0 || study.derived(kStepForward)->refusal() ||
      study.derived(kStepBackward)->refusal()) {
    return vacuous("no trigger");
  }
  const OutputInfo& output = study.outputs().front();
  if (output.kind != OutputKind::loss) return vacuous("no trigger");
  evaluation.forget_derived();
  std::optional<Violation> unanswered;
  const auto above = loss_after(evaluation, kStepForward, unanswered);
  if (!above) return violated(*unanswered);
  const auto below = loss_after(evaluation, kStepBackward, unanswered);
  if (!below) return violated(*unanswered);

  // Whether an infinity is right is the question of finiteness (C2), not of slopes.
  if (!std::isfinite(*above - *below)) return vacuous("no trigger");
  const Case &forward = study.transformed(kStepForward)->c,
             &backward = study.transformed(kStepBackward)->c;
  const Real slope = own_slope(evaluation, forward, backward);
  if (stands_still(evaluation, output, *above - *below, slope)) return vacuous("no digit");

  const auto [high, low] = expected_at_ends(evaluation);
  const Real difference = upstream * (high.v - low.v);
  const double rounding =
      std::fabs(upstream) * (largest_accepted(evaluation.arithmetic(), output, high) +
                             largest_accepted(evaluation.arithmetic(), output, low));
  // The gradients are asked for where they can decide.
  if (!(rounding < static_cast<double>(std::fabs(difference)))) return vacuous("no digit");
  const Directional expected = expected_slope(evaluation, forward, backward);
  const double allowed = rounding + expected.error;
  if (!(allowed < static_cast<double>(std::fabs(difference)))) return vacuous("no digit");
  const double actual = upstream * (*above - *below);
  const Real left_out = difference - expected.slope;
  const double distance = static_cast<double>(std::fabs(actual - slope - left_out));
  if (!std::isfinite(distance)) return vacuous("no trigger");
  Outcome outcome{.worst_ratio = distance / allowed, .compared = 1};
  if (distance <= allowed) return outcome;
  return violated({.place = {.output = "gradient"},
                   .actual = static_cast<double>(slope),
                   .expected = actual - left_out,
                   .allowed = allowed,
                   .error_ratio = outcome.worst_ratio,
                   .detail = "the backward is not the slope of the forward",
                   .cause = "backward is not the derivative"});
}

}  // namespace lossgate::properties
