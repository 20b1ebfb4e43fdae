// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One token: logits 0 and ln 3, so that p = (1/4, 3/4) and logsumexp = 2 ln 2. The second is
/// taken.
Worked cross_entropy() {
  Worked worked("cross_entropy", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}});
  return worked.field("logits", {0.0, kLn3}).field("label", {1.0});
}

TEST(WorkedCrossEntropy, IsMinusTheLogProbOfTheLabel) {
  cross_entropy().gives("loss", {2 * kLn2 - kLn3}).gives("gradient.logits", {0.25, -0.25});
}

TEST(WorkedCrossEntropy, SmoothsOverAllTokensTheTakenOneToo) {
  // a = 1/4: targets (1/8, 7/8).
  cross_entropy()
      .with("label_smoothing", 0.25)
      .gives("loss", {2 * kLn2 - 0.875 * kLn3})
      .gives("gradient.logits", {0.125, -0.125});
}

TEST(WorkedCrossEntropy, AddsTheSquareOfTheLogOfTheSum) {
  // 1/2 (2 ln 2)^2, whose gradient is p 2 ln 2.
  cross_entropy()
      .with("z_loss", 0.5)
      .gives("per_token", {2 * kLn2 - kLn3 + 2 * kLn2 * kLn2})
      .gives("gradient.logits", {0.25 + kLn2 / 2, -0.25 + 1.5 * kLn2});
}

TEST(WorkedCrossEntropy, OfAnImpossibleTokenIsInfiniteOnlyWhereItIsAsked) {
  Worked worked("cross_entropy", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 3}});
  worked.field("logits", {0.0, kLn3, -kInfinity}).field("label", {1.0});
  worked.gives("loss", {2 * kLn2 - kLn3}).gives("gradient.logits", {0.25, -0.25, 0.0});
  worked.with("label_smoothing", 0.5).gives("loss", {kInfinity});
  worked.gives("gradient.logits", {1.0 / 12, 1.0 / 12, -1.0 / 6});
  worked.with("label_smoothing", 0.0).field("label", {2.0});
  worked.gives("loss", {kInfinity}).gives("gradient.logits", {0.25, 0.75, -1.0});
}

TEST(WorkedCrossEntropy, DividesByLabelsOrByItems) {
  Worked worked("cross_entropy", {{Axis::sequences, 1}, {Axis::tokens, 2}, {Axis::vocab, 2}});
  worked.field("logits", {0.0, kLn3, 5.0, 7.0}).field("label", {1.0, -100.0}).with("z_loss", 0.0);
  worked.reduced(Reduction::token_mean).gives("loss", {2 * kLn2 - kLn3});
  worked.with("num_items", 4.0).reduced(Reduction::sum_over_items);
  worked.gives("loss", {(2 * kLn2 - kLn3) / 4.0});
  worked.gives("gradient.logits", {0.0625, -0.0625, 0.0, 0.0});
}

/// The same token for label 1, of probability 3/4, or 0, of probability 1/4.
Worked dft(double label) {
  Worked worked("dft", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}});
  return worked.field("logits", {0.0, kLn3}).field("label", {label});
}

TEST(WorkedDft, IsTheCrossEntropyUnderTheProbabilityOfItsLabel) {
  dft(1.0).gives("loss", {0.75 * (2 * kLn2 - kLn3)}).gives("gradient.logits", {0.1875, -0.1875});
  // Through p as well it would be 1 - 2 ln 2 times that, of the other sign.
  dft(0.0).gives("loss", {0.5 * kLn2}).gives("gradient.logits", {-0.1875, 0.1875});
}

TEST(WorkedDft, IsWhatFourLogitsGive) {
  // mpmath, 50 digits.
  Worked worked("dft", {{Axis::sequences, 1}, {Axis::tokens, 2}, {Axis::vocab, 4}});
  worked.field("logits", {-1.0, 0.5, 2.0, -0.25, -1.0, 0.5, 2.0, -0.25}).field("label", {1.0, 3.0});
  worked.gives("per_token", {0.29477222424113498600, 0.19659269409328099197});
  worked.gives("gradient.logits",
               {0.0058475904835149278607, -0.1356789342025800589, 0.11745199456831991046,
                0.012379349150745220579, 0.0027622061585391098637, 0.012379349150745220579,
                0.055480393786793659897, -0.070621949096077990339});
}

TEST(WorkedDft, OfALabelThatIsCertainOrImpossibleIsZero) {
  Worked worked("dft", {{Axis::sequences, 1}, {Axis::tokens, 2}, {Axis::vocab, 2}});
  worked.field("logits", {0.5, -kInfinity, 0.5, -kInfinity}).field("label", {0.0, 1.0});
  worked.gives("per_token", {0.0, 0.0}).gives("loss", {0.0});
  worked.gives("gradient.logits", {0.0, 0.0, 0.0, 0.0});
}

TEST(WorkedDft, OfALabelFarBelowIsItsSurpriseTimesALittle) {
  Worked worked("dft", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}});
  worked.field("logits", {0.0, -200.0}).field("label", {1.0});
  worked.gives("loss", {2.7677930534734750613e-85});
}

TEST(WorkedDft, DividesByLabelsOrByItems) {
  Worked worked("dft", {{Axis::sequences, 1}, {Axis::tokens, 2}, {Axis::vocab, 2}});
  worked.field("logits", {0.0, kLn3, 5.0, 7.0}).field("label", {0.0, -100.0});
  worked.reduced(Reduction::token_mean).gives("loss", {0.5 * kLn2});
  worked.with("num_items", 4.0).reduced(Reduction::sum_over_items);
  worked.gives("loss", {0.125 * kLn2}).gives("gradient.logits", {-0.046875, 0.046875, 0.0, 0.0});
}

TEST(WorkedEntropyBonus, FallsAsTheDistributionWidens) {
  // H = 1/4 2 ln 2 + 3/4 (2 ln 2 - ln 3); the gradient is p (log p + H).
  Worked worked("entropy_bonus", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 3}});
  worked.field("logits", {0.0, kLn3, -kInfinity}).with("coefficient", 1.0);
  worked.gives("loss", {0.75 * kLn3 - 2 * kLn2});
  worked.gives("gradient.logits", {-0.1875 * kLn3, 0.1875 * kLn3, 0.0});
  worked.with("coefficient", 0.5).gives("per_token", {0.375 * kLn3 - kLn2});
}

TEST(WorkedEntropyBonus, OfEqualLogitsIsTheLogOfTheirNumber) {
  Worked worked("entropy_bonus", {{Axis::sequences, 2}, {Axis::tokens, 1}, {Axis::vocab, 4}});
  worked.field("logits", std::vector<double>(8, 3.0)).with("coefficient", 1.0);
  worked.gives("per_token", {-2 * kLn2, -2 * kLn2}).gives("loss", {-4 * kLn2});
  worked.field("mask", {1.0, 0.0}).reduced(Reduction::sequence_mean);
  worked.gives("per_token", {-2 * kLn2, 0.0}).gives("loss", {-2 * kLn2});
}

}  // namespace
}  // namespace lossgate::reference
