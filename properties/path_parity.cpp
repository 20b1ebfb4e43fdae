// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"
#include "properties/sibling.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

void become_sibling(Evaluation& evaluation) {
  evaluation.study().sibling = CaseStudy::Sibling{.name = evaluation.implementation().name,
                                                  .arithmetic = evaluation.arithmetic(),
                                                  .result = evaluation.actual()};
}

/// What the store of an answer may lose: on either side of a kink one may be 0 and the other not.
double stored(const OutputInfo& output, const Tracked& expected) {
  return storage_error(output, static_cast<double>(std::fabs(expected.v)) + expected.half);
}

}  // namespace

void give_sibling(CaseStudy& study, const impl::Implementation& sound) {
  if (sound.unsupported(study.whole())) return;
  Evaluation evaluation(study, sound);
  if (!incomparable(evaluation)) become_sibling(evaluation);
}

/// Two sound paths to the same numbers differ by the sum of their errors at most. The first sound
/// implementation of a loss is the sibling of all later ones.
Outcome path_parity(Evaluation& evaluation) {
  if (auto outcome = incomparable(evaluation)) return *outcome;
  CaseStudy& study = evaluation.study();
  if (!study.sibling) {
    if (!evaluation.implementation().fault) become_sibling(evaluation);
    return vacuous("does not apply");
  }
  const CaseStudy::Sibling& sibling = *study.sibling;
  if (sibling.name == evaluation.implementation().name) return vacuous("does not apply");
  Outcome outcome;
  const auto visit = [&](std::size_t o, std::int64_t i, const Tracked& own, const Tracked& other) {
    const OutputInfo& output = study.outputs()[o];
    if (!must_be_finite(evaluation.arithmetic(), output, own)) return;
    if (!must_be_finite(sibling.arithmetic, output, other)) return;
    const double allowed = own.err + other.err + stored(output, own) + stored(output, other);
    if (!std::isfinite(allowed)) return;
    const double a = evaluation.actual().find(output.name)->at(i);
    const double b = sibling.result.find(output.name)->at(i);
    const double distance = std::fabs(a - b) - 2.0 * std::max(own.half, other.half);
    const double ratio = !(distance > 0.0) ? (std::isnan(distance) ? HUGE_VAL : 0.0)
                         : allowed == 0.0  ? HUGE_VAL
                                           : distance / allowed;
    // An upstream of 0 may meet an overflow on either path (C2): that is no drift.
    const bool silenced = study.whole().upstream == 0.0 && output.kind == OutputKind::gradient;
    if (silenced && std::isnan(distance)) return;
    ++outcome.compared;
    outcome.worst_ratio = std::max(outcome.worst_ratio, ratio);
    if (ratio <= reference::kThreshold || outcome.violation) return;
    outcome.verdict = Verdict::violated;
    outcome.violation = Violation{.place = place_of(study, output, i),
                                  .actual = a,
                                  .expected = b,
                                  .allowed = reference::kThreshold * allowed,
                                  .half_width = own.half,
                                  .error_ratio = ratio,
                                  .detail = "differs from its sibling " + sibling.name,
                                  .cause = "paths drift apart"};
  };
  study.for_each_pair(evaluation.arithmetic(), sibling.arithmetic, visit);
  return outcome.compared > 0 ? outcome : vacuous("no digit");
}

}  // namespace lossgate::properties
