// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

using reference::Real;
using reference::Tracked;

/// The loss of a study under an arithmetic.
Tracked expected_loss(CaseStudy& study, const Arithmetic& arithmetic) {
  Tracked loss;
  study.for_each_expected(arithmetic, false, [&](std::size_t o, std::int64_t, const Tracked& x) {
    if (study.outputs()[o].kind == OutputKind::loss) loss = x;
  });
  return loss;
}

/// Sums over all differentiable entries of gradient times step.
struct Directional {
  Real actual = 0.0L, expected = 0.0L;
  double error = 0.0;
};

Directional along_step(Evaluation& evaluation, const Case& forward, const Case& backward) {
  CaseStudy& study = evaluation.study();
  Directional sum;
  study.for_each_expected(
      evaluation.arithmetic(), false, [&](std::size_t o, std::int64_t i, const Tracked& x) {
        const OutputInfo& output = study.outputs()[o];
        if (output.kind != OutputKind::gradient) return;
        const Real step = static_cast<Real>(forward.batch.at(output.field).at(i)) -
                          backward.batch.at(output.field).at(i);
        if (step == 0.0L) return;
        sum.actual += step * evaluation.actual().find(output.name)->at(i);
        sum.expected += step * x.v;
        const double magnitude = static_cast<double>(std::fabs(x.v)) + x.half;
        sum.error += static_cast<double>(std::fabs(step)) *
                     (reference::kThreshold * (x.err + storage_error(output, magnitude)) + x.half);
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
  CaseStudy* forward = study.derived(kStepForward);
  CaseStudy* backward = study.derived(kStepBackward);
  if (upstream == 0.0 || !forward || forward->refusal() || backward->refusal()) {
    return vacuous("no trigger");
  }
  const OutputInfo& output = study.outputs().front();
  if (output.kind != OutputKind::loss) return vacuous("no trigger");
  const LossResult& above = evaluation.actual(kStepForward);
  const LossResult& below = evaluation.actual(kStepBackward);
  if (auto violation = malformed(*forward, above)) return violated(*violation);
  if (auto violation = malformed(*backward, below)) return violated(*violation);

  const Tracked high = expected_loss(*forward, evaluation.arithmetic());
  const Tracked low = expected_loss(*backward, evaluation.arithmetic());
  const Directional along = along_step(evaluation, forward->whole(), backward->whole());
  const Real difference = upstream * (high.v - low.v);
  const double rounding =
      std::fabs(upstream) * (reference::kThreshold * (high.err + low.err) + high.half + low.half +
                             storage_error(output, static_cast<double>(std::fabs(high.v))) +
                             storage_error(output, static_cast<double>(std::fabs(low.v))));
  const double allowed = rounding + along.error;
  if (!(allowed < static_cast<double>(std::fabs(difference)))) return vacuous("no digit");
  const double actual = upstream * (above.find("loss")->at(0) - below.find("loss")->at(0));
  const Real left_out = difference - along.expected;
  const double distance = static_cast<double>(std::fabs(actual - along.actual - left_out));
  // Whether an infinity is right is the question of finiteness (C2), not of slopes.
  if (!std::isfinite(distance)) return vacuous("no trigger");
  Outcome outcome{.worst_ratio = distance / allowed, .compared = 1};
  if (distance <= allowed) return outcome;
  return violated({.place = {.output = "gradient"},
                   .actual = static_cast<double>(along.actual),
                   .expected = actual - left_out,
                   .allowed = allowed,
                   .error_ratio = outcome.worst_ratio,
                   .detail = "the backward is not the slope of the forward",
                   .cause = "backward is not the derivative"});
}

}  // namespace lossgate::properties
