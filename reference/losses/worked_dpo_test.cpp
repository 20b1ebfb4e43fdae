// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

/// One pair whose D is this, in the log-prob of the chosen answer.
Worked pair_of(double difference) {
  Worked worked("dpo", {{Axis::sequences, 1}});
  return worked.with("beta", 1.0).field("chosen_log_prob", {difference});
}

TEST(WorkedDpo, BeginsAtTheLogarithmOfTwo) {
  // D = 0: -log sigmoid(0) = ln 2, whatever beta; the derivative is -beta / 2.
  pair_of(0.0)
      .with("beta", 0.5)
      .gives("loss", {kLn2})
      .gives("per_pair", {kLn2})
      .gives("gradient.chosen_log_prob", {-0.25})
      .gives("gradient.rejected_log_prob", {0.25});
}

TEST(WorkedDpo, IsTheCrossEntropyOfTheDifference) {
  // arXiv:2305.18290 eq. 7. D = ln 3: sigmoid = 3/4, so -ln(3/4), and the derivative -1/4.
  pair_of(kLn3)
      .gives("loss", {2.0 * kLn2 - kLn3})
      .gives("gradient.chosen_log_prob", {-0.25})
      .gives("gradient.rejected_log_prob", {0.25});
  // D = -ln 3: -ln(1/4).
  pair_of(-kLn3).gives("loss", {2.0 * kLn2}).gives("gradient.chosen_log_prob", {-0.75});
}

TEST(WorkedDpo, TakesTheReferenceOff) {
  // (2 - 1) - (5 - 4.75) = 3/4.
  Worked worked("dpo", {{Axis::sequences, 1}});
  worked.with("beta", 2.0)
      .with("loss_type", std::string("hinge"))
      .field("chosen_log_prob", {2.0})
      .field("rejected_log_prob", {1.0})
      .field("ref_chosen_log_prob", {5.0})
      .field("ref_rejected_log_prob", {4.75})
      .gives("loss", {0.0});
  worked.with("beta", 0.5).gives("loss", {0.625});
}

TEST(WorkedDpo, SmoothsItsLabels) {
  // D = ln 3, e = 1/4: 3/4 (2 ln 2 - ln 3) + 1/4 2 ln 2 = 2 ln 2 - 3/4 ln 3; -3/16 + 3/16 = 0.
  pair_of(kLn3).with("label_smoothing", 0.25).gives("loss", {2.0 * kLn2 - 0.75 * kLn3});
  // D = 0: -3/8 + 1/8.
  pair_of(0.0).with("label_smoothing", 0.25).gives("gradient.chosen_log_prob", {-0.25});
}

TEST(WorkedDpo, TakesItsMarginOffTheScaledDifference) {
  // arXiv:2405.14734 eq. 6: means over tokens, beta = 2, gamma = 1. 2 (-1/2 + 1) - 1 = 0.
  Worked simpo("dpo", {{Axis::sequences, 1}});
  simpo.with("beta", 2.0)
      .with("margin", 1.0)
      .field("chosen_log_prob", {-0.5})
      .field("rejected_log_prob", {-1.0})
      .gives("loss", {kLn2})
      .gives("gradient.chosen_log_prob", {-1.0})
      .gives("gradient.rejected_log_prob", {1.0});
  // arXiv:2307.09288 eq. 2: rewards that are equal, and a margin of ln 3: -ln(1/4), and -3/4.
  pair_of(0.0)
      .with("margin", kLn3)
      .gives("loss", {2.0 * kLn2})
      .gives("gradient.chosen_log_prob", {-0.75});
  // e = 1/4: 3/4 2 ln 2 + 1/4 (2 ln 2 - ln 3).
  pair_of(0.0)
      .with("margin", kLn3)
      .with("label_smoothing", 0.25)
      .gives("loss", {2.0 * kLn2 - 0.25 * kLn3});
}

TEST(WorkedDpo, HasAMarginInTheSigmoidAlone) {
  pair_of(0.25).with("loss_type", std::string("hinge")).with("margin", 3.0).gives("loss", {0.75});
  pair_of(3.0)
      .with("loss_type", std::string("ipo"))
      .with("beta", 0.25)
      .with("margin", 3.0)
      .gives("loss", {1.0});
}

TEST(WorkedDpo, HasAHingeThatPassesNothingBeyondItsCorner) {
  // arXiv:2309.06657 eq. 14: max(0, 1 - beta D).
  const auto hinge = [](double difference) {
    return pair_of(difference).with("loss_type", std::string("hinge"));
  };
  hinge(0.25).gives("loss", {0.75}).gives("gradient.chosen_log_prob", {-1.0});
  hinge(2.0).gives("loss", {0.0}).gives("gradient.chosen_log_prob", {0.0});
  hinge(1.0).gives("loss", {0.0}).gives("gradient.chosen_log_prob", {0.0});
}

TEST(WorkedDpo, DrawsTheDifferenceToHalfOfOneOverBeta) {
  // arXiv:2310.12036 eq. 17: (D - 1 / (2 beta))^2; beta 1/4: (3 - 2)^2, and twice 1.
  pair_of(3.0)
      .with("loss_type", std::string("ipo"))
      .with("beta", 0.25)
      .gives("loss", {1.0})
      .gives("gradient.chosen_log_prob", {2.0})
      .gives("gradient.rejected_log_prob", {-2.0});
}

TEST(WorkedDpo, IsAMeanOfPairs) {
  Worked two("dpo", {{Axis::sequences, 2}});
  two.with("beta", 1.0)
      .with("loss_type", std::string("hinge"))
      .field("chosen_log_prob", {0.5, -0.5})
      .reduced(Reduction::sequence_mean)
      .gives("loss", {1.0})
      .gives("per_pair", {0.5, 1.5})
      .gives("gradient.chosen_log_prob", {-0.5, -0.5});
}

}  // namespace
}  // namespace lossgate::reference
