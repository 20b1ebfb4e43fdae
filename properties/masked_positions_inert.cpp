// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

/// A gradient at a masked position that is not exactly 0.
std::optional<Violation> moving_gradient(Evaluation& evaluation, const LossResult& actual) {
  CaseStudy& study = evaluation.study();
  for (const OutputInfo& output : study.outputs()) {
    if (output.kind != OutputKind::gradient || !has_positions(output.axes)) continue;
    const Tensor& gradient = *actual.find(output.name);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      if (gradient.at(i) == 0.0) continue;
      Place place = place_of(study, output, i);
      if (place.valid) continue;
      return Violation{
          .place = std::move(place),
          .actual = gradient.at(i),
          .expected = 0.0L,
          .error_ratio = std::numeric_limits<double>::infinity(),
          .detail = "the gradient at a masked position is not 0",
          .cause = std::isfinite(gradient.at(i))
                       ? "gradient at a masked position"
                       : cause_of_no_number(evaluation, study, "non-finite value behind a mask")};
    }
  }
  return std::nullopt;
}

/// The same where the layout follows the numbers, as that of a row which has one number alone does:
/// with other strides a sum may have another order. Both cases lie in one piece then.
std::optional<Violation> first_difference_in_one_piece(Evaluation& evaluation,
                                                       const Transform& transform) {
  CaseStudy& study = evaluation.study();
  const auto in_one_piece = [&](Case c) {
    c.layout = Layout::contiguous;
    return evaluation.call(c);
  };
  const LossResult base = in_one_piece(study.whole()),
                   other = in_one_piece(study.transformed(transform)->c);
  for (const LossResult* result : {&base, &other}) {
    if (auto violation = malformed(study, *result)) return violation;
  }
  return first_difference(study, base, other, Zeros::all);
}

/// Where nothing counts it has, whether the formula is known or not.
bool has_finite_formula(Evaluation& evaluation, const Place& place) {
  CaseStudy& study = evaluation.study();
  const bool zero = evaluation.implementation().contract.empty == Empty::zero;
  if (zero && !anything_counts(study)) return true;
  const auto is_finite_there = [&](std::size_t o, std::int64_t i, const reference::Tracked& x) {
    return study.outputs()[o].name == place.output && i == place.index && std::isfinite(x.v);
  };
  return study.any_expected(evaluation.arithmetic(), false, is_finite_there);
}

/// Of two answers where the formula has a number the one that is none is wrong, whichever data it
/// was given.
std::optional<Violation> blamed(Evaluation& evaluation, Violation violation) {
  const auto answer = static_cast<double>(violation.expected);
  const bool exchanged = !std::isfinite(answer) && std::isfinite(violation.actual);
  if (!exchanged || !has_finite_formula(evaluation, violation.place)) return violation;
  violation.expected = violation.actual;
  violation.actual = answer;
  violation.detail = "a number with other data at masked positions, and none with these";
  return violation;
}

/// What other data behind the mask changes: a bit or, where bits change from call to call anyway or
/// with the layout, more than the bound has room for.
std::optional<Violation> difference(Evaluation& evaluation, const Transform& transform,
                                    const LossResult& other) {
  CaseStudy& study = evaluation.study();
  auto violation = first_difference(study, evaluation.actual(), other, Zeros::all);
  if (!violation) return violation;
  if (evaluation.implementation().contract.deterministic) {
    if (study.whole().layout != Layout::mixed) return blamed(evaluation, *violation);
    auto alike = first_difference_in_one_piece(evaluation, transform);
    if (alike) return blamed(evaluation, *std::move(alike));
  }
  if (incomparable(evaluation) || compare_whole(evaluation).violation) return std::nullopt;
  return compare({.study = study, .arithmetic = evaluation.arithmetic(), .actual = other})
      .violation;
}

std::optional<Violation> leak(Evaluation& evaluation, const Transform& transform) {
  CaseStudy& study = evaluation.study();
  const LossResult& other = evaluation.actual(transform);
  auto violation = malformed(study, other);
  if (!violation) violation = difference(evaluation, transform, other);
  if (!violation) violation = moving_gradient(evaluation, other);
  return violation;
}

}  // namespace

/// Rule C4. Finite data is always asked; non-finite data and illegal labels as the sentinel
/// contract allows, outside it a difference is a note.
Outcome masked_positions_inert(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  CaseStudy& study = evaluation.study();
  if (auto violation = moving_gradient(evaluation, evaluation.actual()))
    return violated(*violation);
  // Callers who leave nothing but zeros behind the mask ask no more.
  if (!study.transformed(kMaskedFinite))
    return anything_masked(study) ? held() : vacuous("no trigger");
  if (auto violation = leak(evaluation, kMaskedFinite)) {
    if (violation->detail.empty()) {
      violation->detail = "other finite data at masked positions changes the result";
    }
    if (violation->cause.empty()) violation->cause = cause_of_data(*violation);
    return violated(*violation);
  }
  evaluation.forget_derived();
  if (!study.transformed(kMaskedNonFinite)) return held();  // the contract rules it out
  auto violation = leak(evaluation, kMaskedNonFinite);
  if (!violation) return held();
  if (!evaluation.implementation().contract.non_finite_masked) {
    return note("non-finite data at masked positions matters; the contract rules it out");
  }
  if (violation->detail.empty()) {
    violation->detail = "non-finite data or illegal labels at masked positions change the result";
  }
  if (violation->cause.empty()) violation->cause = cause_of_data(*violation);
  return violated(*violation);
}

}  // namespace lossgate::properties
