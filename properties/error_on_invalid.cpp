// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

std::optional<Outcome> judge(const Refusal& expected, const LossResult& actual) {
  const bool no_result = actual.refusal && actual.refusal->argument == impl::kNoResult;
  if (!actual.refusal || no_result) {
    const std::string returned = no_result ? "; " + actual.refusal->message : "";
    return violated(
        {.place = {.output = expected.argument,
                   .sequence = expected.sequence,
                   .token = expected.token},
         .error_ratio = HUGE_VAL,
         .detail = "accepted: " + expected.argument + ": " + expected.message + returned,
         .cause = "invalid input accepted"});
  }
  const std::string& named = actual.refusal->argument;
  const auto& beside = actual.refusal->beside;
  if (named == expected.argument || named == impl::kNotComputed) return std::nullopt;
  // The argument at fault may come second, as one that does not fit another.
  if (std::ranges::find(beside, expected.argument) != beside.end()) return std::nullopt;
  return violated(
      {.place = {.output = expected.argument},
       .error_ratio = HUGE_VAL,
       .detail = "the refusal names '" + named + "', at fault is '" + expected.argument + "'",
       .cause = "refusal names another argument"});
}

/// Whether it can know: nobody refuses what does not reach him.
bool reaches(const impl::Implementation& implementation, const CaseStudy& study) {
  const auto& hears = implementation.hears;
  return !hears || hears(study.whole(), study.refusal()->argument);
}

/// Whether the terms, which are no loss, are what was asked for: many functions give them where
/// nothing reduces.
bool returns_terms(const Case& c, const LossResult& actual) {
  return c.spec.reduction == Reduction::none && actual.refusal &&
         actual.refusal->argument == impl::kNoResult &&
         std::ranges::find(actual.refusal->beside, "reduction") != actual.refusal->beside.end();
}

}  // namespace

/// Rule C7: the case itself where it is invalid, else each that has been made so.
Outcome error_on_invalid(Evaluation& evaluation) {
  if (!evaluation.implementation().contract.refuses_invalid) {
    return skipped("contract: refuses_invalid");
  }
  CaseStudy& study = evaluation.study();
  if (study.refusal()) {
    if (!reaches(evaluation.implementation(), study)) return skipped("is not told");
    return judge(*study.refusal(), evaluation.actual()).value_or(held());
  }
  bool asked = false;
  for (const Transform& way : kInvalid) {
    CaseStudy* spoilt = study.derived(way);
    if (!spoilt || !spoilt->refusal() || !reaches(evaluation.implementation(), *spoilt)) continue;
    const LossResult& actual = evaluation.actual(way);
    if (returns_terms(spoilt->whole(), actual)) continue;
    asked = true;
    if (auto wrong = judge(*spoilt->refusal(), actual)) return std::move(*wrong);
    evaluation.forget(way);
  }
  return asked ? held() : vacuous("no trigger");
}

}  // namespace lossgate::properties
