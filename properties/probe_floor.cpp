// SPDX-License-Identifier: Apache-2.0
// What keeps a probability away from 0 before its logarithm: a constant beside it, or a floor.
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>

#include "properties/probes.h"
#include "properties/unlikely_token.h"

namespace lossgate::properties {
namespace {

/// How many times less likely a token is, as a logarithm: one that floors are below, and such as
/// they are above, with exponentials that f32 has or, for a floor of log-probs, with none.
constexpr double kNear = 2.0, kFar[] = {60.0, 3e4};
/// Still farther the answer is the same.
constexpr double kFarther = 4.0 / 3.0;
/// A larger constant is none that guards a logarithm.
constexpr double kLargestConstant = 1.0 / 16;
/// How far from the predicted one a surprise may be, in nats: beside both predictions, which are
/// log 2 apart, little, and more than the constant leaves of the other terms.
constexpr double kSlack = 0.05;

/// e^-surprise.
std::string text_of_probability(double surprise) {
  const double probability = std::exp(-surprise);
  std::ostringstream text;
  text.precision(1);
  if (probability == 0.0) {
    text << "e^-" << std::lround(surprise);
  } else {
    text << std::scientific << probability;
  }
  return text.str();
}

/// The surprise at which those that are answered stop growing, where the formula's go on.
std::optional<double> largest_surprise(const UnlikelyToken& token) {
  const auto near = surprise_of(token.at(kNear));
  if (!near || !(std::fabs(near->answered - near->formula) <= kLargestConstant)) {
    return std::nullopt;
  }
  for (const double gap : kFar) {
    const auto far = surprise_of(token.at(gap)), farther = surprise_of(token.at(kFarther * gap));
    if (!far || !farther) return std::nullopt;
    const bool stops = std::fabs(farther->answered - far->answered) <= kSlack &&
                       far->answered >= -std::log(kLargestConstant);
    const bool goes_on =
        farther->formula - far->formula >= 1.0 && far->formula - far->answered >= 1.0;
    if (stops && goes_on) return far->answered;
  }
  return std::nullopt;
}

}  // namespace

/// Of an ever less likely token the surprise stops growing: at -log c. There, and 2 nats farther
/// out, a constant c beside the probability and a floor at c leave different numbers.
Opinion probe_floor(Suspect& suspect) {
  const UnlikelyToken token(suspect);
  const auto most = largest_surprise(token);
  if (!most) return std::nullopt;
  bool beside = true, floor = true;
  for (const double beyond : {0.0, 2.0}) {
    const auto here = surprise_of(token.of(*most + beyond));
    if (!here) return std::nullopt;
    const double guarded = -std::log(std::exp(-here->formula) + std::exp(-*most));
    beside &= std::fabs(here->answered - guarded) <= kSlack;
    floor &= std::fabs(here->answered - std::min(here->formula, *most)) <= kSlack;
  }
  const std::string constant = text_of_probability(*most);
  if (beside) {
    return Diagnosis{
        "epsilon in a logarithm", 0.95,
        "of an unlikely token the answer is that with " + constant + " added to its probability"};
  }
  if (!floor) return std::nullopt;
  return Diagnosis{
      "undeclared bound", 0.95,
      "of an unlikely token the answer is that with a probability of at least " + constant};
}

}  // namespace lossgate::properties
