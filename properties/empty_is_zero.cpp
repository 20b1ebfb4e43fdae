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
  if (!violation || violation->cause != kEmptyDivisor) return violation;
  const auto plain = zeroed_behind_mask(empty, empty.whole());
  if (plain && !something(empty, evaluation.call(*plain))) {
    violation->cause = cause_of_data(*violation);
  }
  return violation;
}

/// Whether it was no number before the row was empty either, and rightly so: what overflows in a
/// term of another row is not for this property to say.
bool was_there_before(Evaluation& evaluation, const Violation& violation) {
  if (std::isfinite(violation.actual)) return false;
  const Tensor& before = *evaluation.actual().find(violation.place.output);
  return !std::isfinite(before.at(violation.place.index));
}

}  // namespace

/// Whether zeros behind the mask, once the row is empty, make everything right.
bool comes_from_data(Evaluation& evaluation, CaseStudy& row) {
  const auto plain = zeroed_behind_mask(row, row.whole());
  if (!plain) return false;
  const LossResult actual = evaluation.call(*plain);
  if (malformed(row, actual)) return false;
  return !compare({.study = row, .arithmetic = evaluation.arithmetic(), .actual = actual})
              .violation;
}

/// Rule C6: the whole batch empty, then one row empty and the others as the reference has them.
Outcome empty_is_zero(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  if (evaluation.implementation().contract.empty != Empty::zero) return skipped("contract");
  CaseStudy* empty = evaluation.study().derived(kAllMasked);
  if (!empty || empty->refusal()) return vacuous("no trigger");
  if (auto violation = something_of_empty(evaluation, *empty)) return violated(*violation);
  evaluation.forget_derived();
  CaseStudy* row = evaluation.study().derived(kRowMasked);
  // What is not the formula on the whole batch is not blamed on the empty row.
  if (!row || incomparable(evaluation) || reference_agreement(evaluation).violation) return held();
  const LossResult& actual = evaluation.actual(kRowMasked);
  if (auto violation = malformed(*row, actual)) return violated(*violation);
  Outcome outcome =
      compare({.study = *row, .arithmetic = evaluation.arithmetic(), .actual = actual});
  if (outcome.violation && !was_there_before(evaluation, *outcome.violation)) {
    outcome.violation->detail = "an empty row changes what the others contribute";
    outcome.violation->cause =
        comes_from_data(evaluation, *row) ? cause_of_data(*outcome.violation) : "empty row counted";
    return outcome;
  }
  return held();
}

}  // namespace lossgate::properties
