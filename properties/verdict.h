// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/real.h"

namespace lossgate::properties {

/// Rule E1. Nothing but `held` is green by itself; all are counted and shown.
enum class Verdict {
  held,
  violated,
  /// This case could not have shown otherwise: "no trigger" or "no digit"; no case of this loss, or
  /// of a run with one implementation of it, could: "does not apply".
  vacuous,
  skipped,  ///< not asked, with the reason
  note,     ///< outside a declared contract, or accuracy only
};

inline constexpr Verdict kAllVerdicts[] = {Verdict::held, Verdict::violated, Verdict::vacuous,
                                           Verdict::skipped, Verdict::note};
std::string_view name(Verdict verdict);

/// One entry of one output. Coordinates are those of the output; sequence and token are -1 where
/// the output has no such axis.
struct Place {
  std::string output;
  std::int64_t index = -1;
  std::vector<std::int64_t> coordinates = {};
  std::int64_t sequence = -1;
  std::int64_t token = -1;
  bool valid = true;  ///< whether the mask lets the position count

  bool in_gradient() const { return output.starts_with("gradient."); }
};

/// How far splits at random move the loss (rule D2).
struct SplitBias {
  std::vector<double> off_by;  ///< of each split, relative to the loss of the whole batch
  std::string worst;           ///< the split that is farthest off: "[0, 2] [1] [] on 2 ranks"
};

/// What was seen where a property is violated.
struct Violation {
  Place place;
  double actual = 0.0;
  reference::Real expected = 0.0L;
  double allowed = 0.0;     ///< largest |actual - expected| that the rules accept
  double half_width = 0.0;  ///< of the interval of right answers at a kink (B6)
  double error_ratio = 0.0;
  std::string detail;  ///< one sentence: what is wrong here
  std::string cause;   ///< root-cause class
  SplitBias split_bias = {};

  /// Whether two numbers at the place are what is wrong, and not, say, what became of an input.
  bool has_numbers() const;
};

struct Outcome {
  Verdict verdict = Verdict::held;
  std::string reason = {};    ///< of vacuous, skipped and note
  double worst_ratio = 0.0;   ///< largest error ratio met, also where everything held (B5)
  std::int64_t compared = 0;  ///< entries compared
  std::int64_t no_digit = 0;  ///< of those, entries whose bound exceeds their value (B4)
  std::optional<Violation> violation = std::nullopt;
};

Outcome held();
Outcome vacuous(std::string reason);
Outcome skipped(std::string reason);
Outcome note(std::string reason);
Outcome violated(Violation violation);

/// How easily a finding is met (rule E5).
enum class Grade { ordinary, rare, adversarial };

inline constexpr Grade kAllGrades[] = {Grade::ordinary, Grade::rare, Grade::adversarial};
std::string_view name(Grade grade);
std::optional<Grade> parse_grade(std::string_view text);

/// What experiments on the implementation say of a violation (rule G1).
struct Diagnosis {
  std::string cause;        ///< a name of properties/causes.h
  double confidence = 0.0;  ///< 0: no more than what the property saw
  std::string because;      ///< what the experiment showed; empty where none did
};

/// A violation with everything that is needed to show, to weigh and to wave it through.
struct Finding {
  std::string property;
  std::string implementation;
  std::string loss;
  std::string dtype;
  Violation violation;
  std::string reach;  ///< "fails from log-ratio 88.73", empty where no axis tames it
  Grade grade = Grade::rare;
  std::string fingerprint;  ///< rule E6: never a case id
  Diagnosis diagnosis = {};
};

}  // namespace lossgate::properties
