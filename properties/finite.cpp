// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/case_facts.h"
#include "properties/checks.h"
#include "properties/filtered.h"
#include "properties/zero_upstream.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string cause_of(Evaluation& evaluation, const OutputInfo& output, std::int64_t index,
                     const Place& place, bool backward) {
  const char* behind_mask = "non-finite value behind a mask";
  if (comes_from_behind_mask(evaluation, output, index)) return behind_mask;
  if (!anything_counts(evaluation.study())) return "empty divisor";
  if (!place.valid) return behind_mask;
  return backward ? "non-finite slope behind a bound" : "overflow on a live path";
}

/// The entries that the declared form, where it is not the stable one, may itself carry beyond the
/// range of their output, or beyond that of the compute format on the way.
std::set<OutputEntry> out_of_range(Evaluation& evaluation) {
  std::set<OutputEntry> entries;
  if (evaluation.arithmetic() == evaluation.stable_arithmetic()) return entries;
  CaseStudy& study = evaluation.study();
  const auto visit = [&](std::size_t o, std::int64_t i, const Tracked& x) {
    const bool rounds_over = std::isfinite(x.err) && !in_range(study.outputs()[o], x);
    if (rounds_over || x.peak > max_finite(evaluation.arithmetic().compute)) entries.emplace(o, i);
  };
  study.for_each_expected(evaluation.arithmetic(), false, visit);
  return entries;
}

/// Whether the actual results that `wanted` selects are all finite.
template <class Wanted>
bool all_finite(Evaluation& evaluation, Wanted&& wanted) {
  for (const OutputInfo& output : evaluation.study().outputs()) {
    if (wanted(output) && !evaluation.actual().find(output.name)->all_finite()) return false;
  }
  return true;
}

/// Whether the formula has an entry that must be finite, among those that `wanted` selects.
template <class Wanted>
bool anything_must_be_finite(CaseStudy& study, const Arithmetic& arithmetic,
                             CaseStudy::Wanted asked, Wanted&& wanted) {
  if (surely_must_be_finite(study, arithmetic, wanted)) return true;
  const auto is_one = [&](std::size_t o, std::int64_t, const Tracked& x) {
    const OutputInfo& output = study.outputs()[o];
    return wanted(output) && must_be_finite(arithmetic, output, x);
  };
  return study.any_expected(arithmetic, false, is_one, asked);
}

/// Rule C1, for the outputs that `wanted` selects. Peaks are those of the stable form and of the
/// declared one, so that no implementation hides behind an overflow of its own making.
template <class Wanted>
Outcome finite(Evaluation& evaluation, bool backward, Wanted&& wanted) {
  if (auto outcome = unusable_or_nan(evaluation)) return *outcome;
  CaseStudy& study = evaluation.study();
  const Arithmetic& arithmetic = evaluation.stable_arithmetic();
  const LossResult& actual = evaluation.actual();
  const auto asked_of = backward ? CaseStudy::Wanted::everything : CaseStudy::Wanted::values;
  if (all_finite(evaluation, wanted)) {
    const bool asked = anything_must_be_finite(study, arithmetic, asked_of, wanted);
    return asked ? held() : vacuous("no trigger");
  }
  const std::set<OutputEntry> rounded_over = out_of_range(evaluation),
                              silenced = backward ? nan_excused(study, arithmetic)
                                                  : std::set<OutputEntry>();
  std::optional<Violation> violation;
  bool asked = false;
  const auto visit = [&](std::size_t o, std::int64_t i, const Tracked& x) {
    const OutputInfo& output = study.outputs()[o];
    if (!wanted(output) || !must_be_finite(arithmetic, output, x)) return;
    if (rounded_over.contains({o, i})) return;
    asked = true;
    const double value = actual.find(output.name)->at(i);
    if (violation || std::isfinite(value)) return;
    if (std::isnan(value) && silenced.contains({o, i})) return;
    Place place = place_of(study, output, i);
    std::string cause = cause_of(evaluation, output, i, place, backward);
    violation = Violation{.place = std::move(place),
                          .actual = value,
                          .expected = x.v,
                          .allowed = 0.0,
                          .error_ratio = kInfinity,
                          .detail = "the formula's value and every magnitude on the way to it fit",
                          .cause = std::move(cause)};
  };
  study.for_each_expected(arithmetic, false, visit, asked_of);
  if (violation) return violated(*violation);
  return asked ? held() : vacuous("no trigger");
}

/// Without a formula: of finite inputs, no finite loss has a gradient that is no number.
std::optional<Violation> nan_gradient(Evaluation& evaluation) {
  CaseStudy& study = evaluation.study();
  if (unusable(evaluation) || !has_finite_inputs(study.whole())) return std::nullopt;
  const LossResult& actual = evaluation.actual();
  const Tensor* loss = actual.find("loss");
  if (!loss || !std::isfinite(loss->at(0)) || properties::all_finite(actual)) return std::nullopt;
  const std::set<OutputEntry> silenced = nan_excused(study, evaluation.stable_arithmetic());
  for (std::size_t o = 0; o < study.outputs().size(); ++o) {
    const OutputInfo& output = study.outputs()[o];
    const Tensor& tensor = *actual.find(output.name);
    for (std::int64_t i = 0; output.kind == OutputKind::gradient && i < tensor.size(); ++i) {
      if (!std::isnan(tensor.at(i)) || silenced.contains({o, i})) continue;
      Place place = place_of(study, output, i);
      std::string cause =
          place.valid ? "infinite slope" : cause_of(evaluation, output, i, place, true);
      return Violation{.place = std::move(place),
                       .actual = tensor.at(i),
                       .expected = std::numeric_limits<reference::Real>::quiet_NaN(),
                       .error_ratio = kInfinity,
                       .detail = "inputs and loss are finite",
                       .cause = std::move(cause)};
    }
  }
  return std::nullopt;
}

}  // namespace

Outcome finite_forward(Evaluation& evaluation) {
  return finite(evaluation, false,
                [](const OutputInfo& output) { return output.kind != OutputKind::gradient; });
}

Outcome finite_backward(Evaluation& evaluation) {
  Outcome outcome = finite(evaluation, true, [](const OutputInfo& output) {
    return output.kind == OutputKind::gradient;
  });
  if (outcome.violation || !evaluation.study().loss().advice) return outcome;
  auto violation = nan_gradient(evaluation);
  return violation ? violated(std::move(*violation)) : outcome;
}

Outcome finite_for_every_finite_input(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  CaseStudy& study = evaluation.study();
  if (!has_finite_inputs(study.whole())) return vacuous("no trigger");
  for (const OutputInfo& output : study.outputs()) {
    const Tensor& tensor = *evaluation.actual().find(output.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (std::isfinite(tensor.at(i))) continue;
      return violated({.place = place_of(study, output, i),
                       .actual = tensor.at(i),
                       .error_ratio = kInfinity,
                       .detail = "every input is finite",
                       .cause = "unbounded exponent"});
    }
  }
  return held();
}

}  // namespace lossgate::properties
