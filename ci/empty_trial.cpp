// SPDX-License-Identifier: Apache-2.0
#include "ci/empty_trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fuzz/draw_case.h"
#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/evaluation.h"
#include "reference/spec/masked.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;

/// The formula's loss, which leaves empty rows out, and how far from it a right answer may be.
struct Expected {
  double loss = std::numeric_limits<double>::quiet_NaN(), accepted = 0.0;
};

Expected expected_loss(CaseStudy& study, const Arithmetic& arithmetic) {
  Expected expected;
  const auto see = [&](std::size_t output, std::int64_t, const reference::Tracked& value) {
    const OutputInfo& info = study.outputs()[output];
    if (info.kind != OutputKind::loss) return;
    expected = {static_cast<double>(value.v),
                properties::largest_accepted(arithmetic, info, value)};
  };
  study.for_each_expected(arithmetic, false, see, CaseStudy::Wanted::values);
  return expected;
}

/// The share of sequences in which something counts.
double live_share(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const std::int64_t rows = c.shape[Axis::sequences], tokens = c.shape[Axis::tokens];
  std::int64_t live = 0;
  for (std::int64_t s = 0; s < rows; ++s) {
    const auto row = valid.begin() + s * tokens;
    live += std::find(row, row + tokens, true) != row + tokens;
  }
  return static_cast<double>(live) / static_cast<double>(rows);
}

/// The case once nothing in it counts, with plain zeros behind the mask: what huge numbers make of
/// a sound divisor's 0, infinity times 0, is none of the empty batch's doing.
std::optional<Case> with_nothing(const AskedUnder& asked, const Case& c) {
  CaseStudy study(asked.loss(), c);
  const bool is_empty = !properties::anything_counts(study);
  const properties::Transformed* masked =
      is_empty ? nullptr : study.transformed(properties::kAllMasked);
  if (!is_empty && !masked) return std::nullopt;
  Case emptied = is_empty ? study.whole() : masked->c;
  const CaseStudy nothing(asked.loss(), emptied);
  return properties::zeroed_behind_mask(nothing, emptied).value_or(emptied);
}

}  // namespace

std::optional<MadeOfNothing> made_of_nothing(const AskedUnder& asked, const Case& c) {
  std::optional<Case> emptied = with_nothing(asked, c);
  if (!emptied) return std::nullopt;
  CaseStudy study(asked.loss(), *std::move(emptied));
  Evaluation evaluation(study, asked.implementation());
  const LossResult& result = evaluation.actual();
  if (result.refusal) {
    if (result.refusal->argument == impl::kNotComputed) return std::nullopt;
    return MadeOfNothing{Empty::error, result.refusal->message};
  }
  const Tensor* loss = result.find("loss");
  if (!loss || !std::isnan(loss->at(0))) return std::nullopt;
  return MadeOfNothing{Empty::nan, ""};
}

std::optional<MadeOfNothing> made_of_nothing(const AskedUnder& asked, Dtype dtype) {
  const LossSignature& signature = asked.loss().signature;
  fuzz::Choices choices =
      fuzz::case_choices(kTrialSeed, signature.id, dtype, fuzz::Profile::benign, 0);
  const Case c = fuzz::draw_case(signature, dtype, fuzz::Profile::benign, choices);
  if (asked.implementation().unsupported(c)) return std::nullopt;
  return made_of_nothing(asked, c);
}

std::string line_of(Empty word) {
  return word == Empty::nan     ? "empty = \"nan\""
         : word == Empty::error ? "empty = \"error\""
                                : "empty = \"zero\"";
}

std::optional<Case> with_empty_row(const LossSignature& signature, Case c) {
  c.split = {};
  if (has_empty_sequence(valid_positions(signature, c), c.shape[Axis::sequences])) return c;
  LossSignature any = signature;  // whoever counts such rows is asked none of them otherwise
  any.empty_rows = EmptyRows::skipped;
  auto masked = properties::kRowMasked.apply(any, c, c);
  return masked ? std::optional(std::move(masked->c)) : std::nullopt;
}

bool counts_empty_rows(const AskedUnder& asked, const Case& c) {
  LossSignature counted = asked.loss().signature;
  counted.empty_rows = EmptyRows::counted;
  if (allows_empty_rows(counted, c.spec)) return false;  // no mean over sequences
  std::optional<Case> emptied = with_empty_row(asked.loss().signature, c);
  if (!emptied) return false;
  CaseStudy study(asked.loss(), *std::move(emptied));
  if (study.refusal()) return false;
  Evaluation evaluation(study, asked.implementation());
  const LossResult& result = evaluation.actual();
  const Tensor* loss = result.refusal ? nullptr : result.find("loss");
  const auto [left_out, accepted] = expected_loss(study, evaluation.arithmetic());
  if (!loss || !std::isfinite(left_out)) return false;
  const double counts = left_out * live_share(asked.loss().signature, study.whole());
  const bool tells = std::fabs(left_out - counts) > 2.0 * accepted;
  return tells && std::fabs(loss->at(0) - counts) <= accepted;
}

}  // namespace lossgate::ci
