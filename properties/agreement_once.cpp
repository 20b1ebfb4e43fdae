// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "properties/agreement.h"

/// Comparisons with the reference that need not be made twice.
namespace lossgate::properties {
namespace {

/// Whether the moved case's gradients are, entry by entry, the bits of the base's.
bool same_gradients(Evaluation& evaluation, const LossResult& actual, const Transformed& moved) {
  for (const OutputInfo& output : evaluation.study().outputs()) {
    if (output.kind != OutputKind::gradient) continue;
    const Tensor& base = *evaluation.actual().find(output.name);
    const Tensor& other = *actual.find(output.name);
    for (std::int64_t i = 0; i < base.size(); ++i) {
      const std::int64_t at = moved.index_of(output, other.extents, i);
      if (load_bits(base.dtype, base.element(i)) != load_bits(other.dtype, other.element(at))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

const Outcome& compare_whole(Evaluation& evaluation) {
  if (!evaluation.agreement) {
    evaluation.agreement = compare({.study = evaluation.study(),
                                    .arithmetic = evaluation.arithmetic(),
                                    .actual = evaluation.actual()});
  }
  return *evaluation.agreement;
}

Outcome compare_transformed(Evaluation& evaluation, const Transform& transform, bool split) {
  if (auto outcome = incomparable(evaluation)) return *outcome;
  CaseStudy* derived = evaluation.study().derived(transform);
  if (!derived) return vacuous("no trigger");
  const LossResult& actual = evaluation.actual(transform);
  if (auto violation = malformed(*derived, actual)) return violated(*violation);
  const Transformed& moved = *evaluation.study().transformed(transform);
  Comparison comparison{.study = evaluation.study(),
                        .arithmetic = evaluation.arithmetic(),
                        .actual = actual,
                        .moved = &moved,
                        .split = split};
  if (split || compare_whole(evaluation).violation || !same_gradients(evaluation, actual, moved)) {
    return compare(comparison);
  }
  comparison.wanted = CaseStudy::Wanted::values;
  const Outcome values = compare(comparison);
  if (values.violation) return values;
  Outcome outcome = compare_whole(evaluation);
  outcome.worst_ratio = std::max(outcome.worst_ratio, values.worst_ratio);
  return outcome;
}

}  // namespace lossgate::properties
