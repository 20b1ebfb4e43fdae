// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// What would have to be otherwise for the formula to give every answer.
struct Explanation {
  Candidate candidate;  ///< that gives them
  OptionValues told;    ///< options that were told otherwise, with the values that it goes by
  std::string text;     ///< for people
};

/// Of a function that is not the loss: other values of what it was told, another reduction than the
/// one that it was told, the other sign of the advantage, one field in the place of another,
/// gradients that are not the loss's.
/// Nothing where none of these explains the answers.
std::optional<Explanation> explain(const Interview& interview);

}  // namespace lossgate::ci
