// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Log-probs of odds of 1 and of 3.
const double kHalf = -kLn2, kThreeQuarters = std::log(0.75);

/// One pair of these mean log-probs.
Worked pair_of(double chosen, double rejected) {
  Worked worked("orpo", {{Axis::sequences, 1}});
  return worked.with("beta", 1.0)
      .field("chosen_log_prob", {chosen})
      .field("rejected_log_prob", {rejected});
}

TEST(WorkedOrpo, IsTheLogarithmOfTwoWhereBothAreAsLikely) {
  // h = 0; the derivative is -+ 1/2 over what each leaves, 1/2.
  pair_of(kHalf, kHalf)
      .gives("loss", {kLn2})
      .gives("per_pair", {kLn2})
      .gives("gradient.chosen_log_prob", {-1.0})
      .gives("gradient.rejected_log_prob", {1.0});
}

TEST(WorkedOrpo, IsTheCrossEntropyOfTheOddsRatio) {
  // arXiv:2403.07691 eq. 4-7. Odds of 3 and 1: sigmoid(ln 3) = 3/4; 1/4 over 1/4, and over 1/2.
  pair_of(kThreeQuarters, kHalf)
      .gives("loss", {-kThreeQuarters})
      .gives("gradient.chosen_log_prob", {-1.0})
      .gives("gradient.rejected_log_prob", {0.5});
  // The other way round: sigmoid(-ln 3) = 1/4; 3/4 over 1/2, and over 1/4.
  pair_of(kHalf, kThreeQuarters)
      .gives("loss", {2.0 * kLn2})
      .gives("gradient.chosen_log_prob", {-1.5})
      .gives("gradient.rejected_log_prob", {3.0});
}

TEST(WorkedOrpo, IsWeighedByBetaAndNotSharpenedByIt) {
  pair_of(kHalf, kThreeQuarters)
      .with("beta", 0.25)
      .gives("loss", {0.5 * kLn2})
      .gives("gradient.chosen_log_prob", {-0.375})
      .gives("gradient.rejected_log_prob", {0.75});
}

TEST(WorkedOrpo, BesideOddsOfOneIsTheSurpriseOfTheChosenAnswer) {
  // sigmoid(log(p / (1 - p))) = p: the term is -c, its slopes -1 and (1 - p) over 1/2.
  for (const double chosen : {-1e-12, -1e-3, -1.0, -30.0, -700.0}) {
    pair_of(chosen, kHalf)
        .gives("loss", {-chosen})
        .gives("gradient.chosen_log_prob", {-1.0})
        .gives("gradient.rejected_log_prob", {-2.0 * std::expm1(chosen)});
  }
}

TEST(WorkedOrpo, OfACertainAnswerIsNothingAndItsSlopeTheOddsOfTheOther) {
  for (const double certain : {0.0, -0.0}) {
    pair_of(certain, kThreeQuarters)
        .gives("loss", {0.0})
        .gives("gradient.chosen_log_prob", {-3.0})
        .gives("gradient.rejected_log_prob", {0.0});
  }
  pair_of(kHalf, 0.0).gives("loss", {kInfinity}).gives("gradient.chosen_log_prob", {-2.0});
}

TEST(WorkedOrpo, OfAnAnswerThatIsRuledOutIsAllOrNothing) {
  pair_of(-kInfinity, kThreeQuarters)
      .gives("loss", {kInfinity})
      .gives("gradient.chosen_log_prob", {-1.0})
      .gives("gradient.rejected_log_prob", {4.0});
  pair_of(kThreeQuarters, -kInfinity)
      .gives("loss", {0.0})
      .gives("gradient.chosen_log_prob", {0.0})
      .gives("gradient.rejected_log_prob", {0.0});
}

TEST(WorkedOrpo, IsAMeanOfPairs) {
  Worked two("orpo", {{Axis::sequences, 2}});
  two.with("beta", 1.0)
      .field("chosen_log_prob", {kHalf, kThreeQuarters})
      .field("rejected_log_prob", {kThreeQuarters, kHalf})
      .reduced(Reduction::sequence_mean)
      .gives("loss", {2.0 * kLn2 - 0.5 * kLn3})
      .gives("gradient.chosen_log_prob", {-0.75, -0.5})
      .gives("gradient.rejected_log_prob", {1.5, 0.25});
}

}  // namespace
}  // namespace lossgate::reference
