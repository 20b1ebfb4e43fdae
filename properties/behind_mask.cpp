// SPDX-License-Identifier: Apache-2.0
#include "properties/behind_mask.h"

#include <algorithm>
#include <cmath>

#include "properties/agreement.h"
#include "properties/case_facts.h"

namespace lossgate::properties {

bool anything_counts(const CaseStudy& study) {
  return std::ranges::count(valid_positions(study.signature(), study.whole()), true) > 0;
}

bool anything_masked(const CaseStudy& study) {
  return std::ranges::count(valid_positions(study.signature(), study.whole()), false) > 0;
}

std::optional<Case> zeroed_behind_mask(const CaseStudy& study, Case c,
                                       const std::function<bool(const Field&, double)>& wanted) {
  const std::vector<bool> valid = valid_positions(study.signature(), c);
  const bool nothing_counts = !valid.empty() && std::ranges::find(valid, true) == valid.end();
  bool changed = false;
  for (const Field& field : study.signature().fields) {
    if (!nothing_counts && !is_positional(field)) continue;
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype)) continue;
    const std::int64_t each = nothing_counts ? 1 : entries_per_position(c, tensor);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.at(i);
      if (value == 0.0 || (!nothing_counts && valid[static_cast<std::size_t>(i / each)])) continue;
      if (wanted && !wanted(field, value)) continue;
      tensor.set(i, 0.0);
      changed = true;
    }
  }
  return changed ? std::optional(std::move(c)) : std::nullopt;
}

bool comes_from_behind_mask(Evaluation& evaluation, const OutputInfo& output, std::int64_t index) {
  const CaseStudy& study = evaluation.study();
  const std::optional<Case> plain = zeroed_behind_mask(study, study.whole());
  if (!plain) return false;
  const LossResult result = evaluation.call(*plain);
  if (malformed(study, result)) return false;
  return std::isfinite(result.find(output.name)->at(index));
}

const char* cause_of_no_number(Evaluation& evaluation, const CaseStudy& study,
                               const char* otherwise) {
  if (anything_counts(study)) return otherwise;
  const std::optional<Case> plain = zeroed_behind_mask(study, study.whole());
  const LossResult result = evaluation.call(plain.value_or(study.whole()));
  for (const Output& output : result.outputs) {
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
      if (!std::isfinite(output.tensor.at(i))) return "empty divisor";
    }
  }
  return otherwise;
}

const char* cause_of_data(const Violation& violation) {
  return std::isfinite(violation.actual) ? "masked data leaks" : "non-finite value behind a mask";
}

}  // namespace lossgate::properties
