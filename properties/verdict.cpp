// SPDX-License-Identifier: Apache-2.0
#include "properties/verdict.h"

#include <cmath>

namespace lossgate::properties {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return "held";
    case Verdict::violated:
      return "violated";
    case Verdict::vacuous:
      return "vacuous";
    case Verdict::skipped:
      return "skipped";
    case Verdict::note:
      return "note";
  }
  return "?";
}

std::string_view name(Grade grade) {
  switch (grade) {
    case Grade::ordinary:
      return "ordinary";
    case Grade::rare:
      return "rare";
    case Grade::adversarial:
      return "adversarial";
  }
  return "?";
}

std::optional<Grade> parse_grade(std::string_view text) {
  for (Grade grade : kAllGrades) {
    if (name(grade) == text) return grade;
  }
  return std::nullopt;
}

bool Violation::has_numbers() const {
  if (place.output.empty()) return false;
  const auto right = static_cast<double>(expected);
  return actual != right || std::signbit(actual) != std::signbit(right);
}

Outcome held() { return {}; }

Outcome vacuous(std::string reason) {
  return {.verdict = Verdict::vacuous, .reason = std::move(reason)};
}

Outcome skipped(std::string reason) {
  return {.verdict = Verdict::skipped, .reason = std::move(reason)};
}

Outcome note(std::string reason) { return {.verdict = Verdict::note, .reason = std::move(reason)}; }

Outcome violated(Violation violation) {
  Outcome outcome{.verdict = Verdict::violated, .worst_ratio = violation.error_ratio};
  outcome.violation = std::move(violation);
  return outcome;
}

}  // namespace lossgate::properties
