// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"
#include "properties/sibling.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

struct Bounds {
  double error = 0.0, half = 0.0, magnitude = 0.0;
  bool comparable = false;
};

/// Errors allowed to one path, output by output, entry by entry.
std::vector<std::vector<Bounds>> bounds_of(CaseStudy& study, const Arithmetic& arithmetic) {
  std::vector<std::vector<Bounds>> all;
  for (const OutputInfo& output : study.outputs()) {
    all.emplace_back(static_cast<std::size_t>(element_count(output.extents)));
  }
  study.for_each_expected(arithmetic, false, [&](std::size_t o, std::int64_t i, const Tracked& x) {
    all[o][static_cast<std::size_t>(i)] = {
        .error = x.err,
        .half = x.half,
        .magnitude = static_cast<double>(std::fabs(x.v)) + x.half,
        .comparable = must_be_finite(arithmetic, study.outputs()[o], x)};
  });
  return all;
}

void become_sibling(Evaluation& evaluation) {
  evaluation.study().sibling = CaseStudy::Sibling{.name = evaluation.implementation().name,
                                                  .arithmetic = evaluation.arithmetic(),
                                                  .result = evaluation.actual()};
}

}  // namespace

void give_sibling(CaseStudy& study, const impl::Implementation& sound) {
  if (study.refusal() || sound.unsupported(study.whole())) return;
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
    return vacuous("no trigger");
  }
  const CaseStudy::Sibling& sibling = *study.sibling;
  if (sibling.name == evaluation.implementation().name) return vacuous("no trigger");
  const auto own = bounds_of(study, evaluation.arithmetic());
  const auto other = bounds_of(study, sibling.arithmetic);
  Outcome outcome;
  for (std::size_t o = 0; o < own.size(); ++o) {
    const OutputInfo& output = study.outputs()[o];
    const Tensor& a = *evaluation.actual().find(output.name);
    const Tensor& b = *sibling.result.find(output.name);
    for (std::size_t i = 0; i < own[o].size(); ++i) {
      if (!own[o][i].comparable || !other[o][i].comparable) continue;
      const auto at = static_cast<std::int64_t>(i);
      const double allowed =
          own[o][i].error + other[o][i].error + 2.0 * storage_error(output, own[o][i].magnitude);
      if (!std::isfinite(allowed)) continue;
      const double distance =
          std::fabs(a.at(at) - b.at(at)) - 2.0 * std::max(own[o][i].half, other[o][i].half);
      const double ratio = !(distance > 0.0) ? (std::isnan(distance) ? HUGE_VAL : 0.0)
                           : allowed == 0.0  ? HUGE_VAL
                                             : distance / allowed;
      // An upstream of 0 may meet an overflow on either path (C2): that is no drift.
      const bool silenced = study.whole().upstream == 0.0 && output.kind == OutputKind::gradient;
      if (silenced && std::isnan(distance)) continue;
      ++outcome.compared;
      outcome.worst_ratio = std::max(outcome.worst_ratio, ratio);
      if (ratio <= reference::kThreshold || outcome.violation) continue;
      outcome.verdict = Verdict::violated;
      outcome.violation = Violation{.place = place_of(study, output, at),
                                    .actual = a.at(at),
                                    .expected = b.at(at),
                                    .allowed = reference::kThreshold * allowed,
                                    .half_width = own[o][i].half,
                                    .error_ratio = ratio,
                                    .detail = "differs from its sibling " + sibling.name,
                                    .cause = "paths drift apart"};
    }
  }
  return outcome.compared > 0 ? outcome : vacuous("no digit");
}

}  // namespace lossgate::properties
