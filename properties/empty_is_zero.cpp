// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

constexpr const char* kEmptyDivisor = "empty divisor";

/// An output of an empty batch that is not exactly 0.
std::optional<Violation> something(CaseStudy& study, const LossResult& actual) {
  if (auto violation = malformed(study, actual)) return violation;
  for (const OutputInfo& output : study.outputs()) {
    const Tensor& tensor = *actual.find(output.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.at(i) == 0.0) continue;
      return Violation{.place = place_of(study, output, i),
                       .actual = tensor.at(i),
                       .expected = 0.0L,
                       .error_ratio = HUGE_VAL,
                       .detail = "nothing is valid, so everything is exactly 0",
                       .cause = kEmptyDivisor};
    }
  }
  return std::nullopt;
}

/// The same, with the cause named: it is no divisor where zeros behind the mask give zeros.
std::optional<Violation> something_of_empty(Evaluation& evaluation, CaseStudy& empty) {
  auto violation = something(empty, evaluation.actual(kAllMasked));
  if (violation && violation->place.index >= 0 && anything_counts(evaluation.study())) {
    violation->detail = "every position masked by the property, so everything is exactly 0";
  }
  if (!violation || violation->cause != kEmptyDivisor) return violation;
  const auto plain = zeroed_behind_mask(empty, empty.whole());
  if (plain && !something(empty, evaluation.call(*plain))) {
    violation->cause = cause_of_data(*violation);
  }
  return violation;
}

/// Whether it was no number before that was masked either, and rightly so: what overflows in a
/// term that is left is not for this property to say.
bool was_there_before(Evaluation& evaluation, const Violation& violation) {
  if (std::isfinite(violation.actual)) return false;
  const Tensor& before = *evaluation.actual().find(violation.place.output);
  return !std::isfinite(before.at(violation.place.index));
}

/// Whether zeros behind the mask make everything right.
bool comes_from_data(Evaluation& evaluation, CaseStudy& study) {
  const auto plain = zeroed_behind_mask(study, study.whole());
  if (!plain) return false;
  const LossResult actual = evaluation.call(*plain);
  if (malformed(study, actual)) return false;
  return !compare({.study = study, .arithmetic = evaluation.arithmetic(), .actual = actual})
              .violation;
}

/// What is left once that much is masked, where it is not as the reference has it; without a place
/// where there is no answer.
std::optional<Violation> wrong_remainder(Evaluation& evaluation, const Transform& masked) {
  CaseStudy* study = evaluation.study().derived(masked);
  if (!study) return std::nullopt;
  const LossResult& actual = evaluation.actual(masked);
  if (auto violation = malformed(*study, actual)) return violation;
  auto violation =
      compare({.study = *study, .arithmetic = evaluation.arithmetic(), .actual = actual}).violation;
  if (!violation) return std::nullopt;
  // What the data that is masked now does is another matter, whatever was there before.
  const bool of_data = comes_from_data(evaluation, *study);
  if (!of_data && was_there_before(evaluation, *violation)) return std::nullopt;
  violation->cause = of_data ? cause_of_data(*violation) : "";
  return violation;
}

std::optional<Violation> wrong_beside_empty_row(Evaluation& evaluation) {
  auto violation = wrong_remainder(evaluation, kRowMasked);
  if (!violation || violation->place.index < 0) return violation;
  const bool counted = std::isfinite(violation->actual);
  violation->detail = "an empty row changes what the others contribute";
  if (violation->cause.empty()) violation->cause = counted ? "empty row counted" : kEmptyDivisor;
  return violation;
}

/// A number that is another one there is what masked positions add, for other properties to say.
std::optional<Violation> no_number_of_one_position(Evaluation& evaluation) {
  auto violation = wrong_remainder(evaluation, kOneLeft);
  if (!violation || violation->place.index < 0) return violation;
  if (std::isfinite(violation->actual)) return std::nullopt;
  violation->detail = "one position alone has a number, as the formula has it";
  if (violation->cause.empty()) violation->cause = kEmptyDivisor;
  return violation;
}

}  // namespace

/// Rule C6: the whole batch empty; then one row, and all positions but one.
Outcome empty_is_zero(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  if (evaluation.implementation().contract.empty != Empty::zero) return skipped("contract");
  CaseStudy* empty = evaluation.study().derived(kAllMasked);
  if (!empty || empty->refusal()) return vacuous("no trigger");
  if (auto violation = something_of_empty(evaluation, *empty)) return violated(*violation);
  // What is not the formula on the whole batch is not blamed on what is empty.
  if (incomparable(evaluation) || reference_agreement(evaluation).violation) return held();
  evaluation.forget_derived();
  if (auto violation = wrong_beside_empty_row(evaluation)) return violated(*violation);
  evaluation.forget_derived();
  if (auto violation = no_number_of_one_position(evaluation)) return violated(*violation);
  return held();
}

}  // namespace lossgate::properties
