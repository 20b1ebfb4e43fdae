// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ci/asked_under.h"

/// What a brought function makes of a batch or a row in which nothing counts.
namespace lossgate::ci {

/// No number, or no answer.
struct MadeOfNothing {
  Empty word;
  std::string said;  ///< where it refused
};

/// Of the case, once nothing in it counts, and zeros lie behind its mask. Nothing where that is a number, or cannot be.
std::optional<MadeOfNothing> made_of_nothing(const AskedUnder& asked, const Case& c);

/// The same of a benign case.
std::optional<MadeOfNothing> made_of_nothing(const AskedUnder& asked, Dtype dtype);

/// `empty = "nan"`
std::string line_of(Empty word);

/// The whole batch of the case with a row in which nothing counts beside others: itself where it
/// has one, else with its first live row masked, if another one is live.
std::optional<Case> with_empty_row(const LossSignature& signature, Case c);

/// Whether its mean over the sequences of the case has one without a valid position in its divisor;
/// where all have some, once one has none.
bool counts_empty_rows(const AskedUnder& asked, const Case& c);

}  // namespace lossgate::ci
