// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

/// Whether the entry that was poisoned became NaN, rather than infinite.
bool poisoned_by_nan(const Case& before, const Case& after) {
  for (const auto& [name, tensor] : before.batch.fields) {
    const Tensor& other = after.batch.at(name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (std::isnan(other.at(i)) && !std::isnan(tensor.at(i))) return true;
    }
  }
  return false;
}

/// The reference, fed with the same poisoned entry, says which outputs depend on it.
Outcome with_poison(Evaluation& evaluation, const Transform& poison) {
  CaseStudy* poisoned = evaluation.study().derived(poison);
  if (!poisoned || poisoned->refusal()) return vacuous("no trigger");
  const auto& outputs = poisoned->outputs();
  // The loss speaks for everything behind it; an operation without one answers entry by entry.
  const OutputKind asked =
      outputs.front().kind == OutputKind::loss ? OutputKind::loss : OutputKind::value;
  // What is no number even without the poison says nothing about it.
  std::set<std::pair<std::size_t, std::int64_t>> undefined;
  evaluation.study().for_each_expected(
      evaluation.arithmetic(), false,
      [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        if (std::isnan(expected.v)) undefined.emplace(o, i);
      },
      CaseStudy::Wanted::values);
  // Where an infinity leaves a NaN it met a zero or another infinity, and either may decide.
  const bool nan = poisoned_by_nan(evaluation.study().whole(), poisoned->whole());
  std::vector<std::pair<const OutputInfo*, std::int64_t>> touched;
  poisoned->for_each_expected(
      evaluation.arithmetic(), false,
      [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        const bool surfaces = nan ? !std::isfinite(expected.v) : std::isinf(expected.v);
        if (outputs[o].kind == asked && surfaces && !undefined.contains({o, i})) {
          touched.emplace_back(&outputs[o], i);
        }
      },
      CaseStudy::Wanted::values);
  if (touched.empty()) return vacuous("no trigger");
  const LossResult& actual = evaluation.actual(poison);
  if (actual.refusal) return held();
  if (auto violation = malformed(*poisoned, actual)) return violated(*violation);
  for (const auto& [output, index] : touched) {
    const double value = actual.find(output->name)->at(index);
    if (!std::isfinite(value)) continue;
    return violated({.place = place_of(*poisoned, *output, index),
                     .actual = value,
                     .expected = std::nanl(""),
                     .error_ratio = HUGE_VAL,
                     .detail = "a NaN or infinity at a valid position became a plausible number",
                     .cause = "laundering"});
  }
  return held();
}

}  // namespace

/// Rule C3. A field that is laundered hides from a poison in another, so two are asked.
Outcome no_laundering(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  const Outcome first = with_poison(evaluation, kNanAtValid);
  if (first.violation) return first;
  evaluation.forget_derived();
  const Outcome second = with_poison(evaluation, kNanInAnotherField);
  return second.violation || first.verdict == Verdict::vacuous ? second : first;
}

}  // namespace lossgate::properties
