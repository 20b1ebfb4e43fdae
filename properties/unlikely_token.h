// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "properties/suspect.h"

namespace lossgate::properties {

/// The surprise of one token, -log p, by the formula and as it is answered.
struct Surprise {
  double formula, answered;
};

/// Of the case of an unlikely token: the loss for it, or the first value. Nothing where that is
/// unknown.
std::optional<Surprise> surprise_of(const std::optional<Reading>& reading);

/// One position whose token the differentiable logits, fields or such as a layer makes, hold for
/// unlikely, and constant ones for certain.
class UnlikelyToken {
 public:
  /// Of a vocabulary that is so large, or as large as that of the given case.
  explicit UnlikelyToken(const Suspect& suspect, std::optional<std::int64_t> vocab = {})
      : suspect_(suspect), vocab_(vocab) {}

  /// What is answered where it is that much below all other logits.
  std::optional<Reading> at(double gap) const;
  /// Where the formula has about that surprise; nothing where it does not grow.
  std::optional<Reading> of(double surprise) const;
  /// How far below all others it has it, as the surprise grows far out.
  std::optional<double> gap_of(double surprise) const;

 private:
  std::optional<Case> with_gap(double gap) const;

  const Suspect& suspect_;
  std::optional<std::int64_t> vocab_;
};

}  // namespace lossgate::properties
