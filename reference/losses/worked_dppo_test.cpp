// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

/// One token that has moved from a probability of exp(old) to exp(now), with advantage A.
Worked moved(double old, double now, double advantage) {
  Worked worked("dppo", {{Axis::sequences, 1}, {Axis::tokens, 1}});
  return worked.field("log_prob", {now})
      .field("old_log_prob", {old})
      .field("advantage", {advantage});
}

/// The same by KL.
Worked by_kl(double old, double now, double advantage) {
  return moved(old, now, advantage).with("divergence", "kl");
}

const double kHalf = -kLn2, kQuarter = -2.0 * kLn2, kThreeQuarters = kLn3 - 2.0 * kLn2;

TEST(WorkedDppo, IsReinforceUnderItsWeightWithinItsBound) {
  // From 1/4 to 3/8: w = 3/2, |p - q| = 1/8. -3/2 x 3 x ln(3/8), and the gradient is -9/2.
  const double now = kLn3 - 3.0 * kLn2;
  moved(kQuarter, now, 3.0).gives("loss", {-4.5 * now}).gives("gradient.log_prob", {-4.5});
  moved(kQuarter, kQuarter, 3.0).gives("loss", {6.0 * kLn2}).gives("gradient.log_prob", {-3.0});
}

TEST(WorkedDppo, LeavesATokenOutWhoseAdvantageLeadsItOn) {
  // arXiv:2602.04879 eq. 12: 1/2 to 3/4 is 1/4 upwards, beyond 0.2; w = 3/2.
  const double term = -1.5 * kThreeQuarters;
  moved(kHalf, kThreeQuarters, 1.0).gives("loss", {0.0}).gives("gradient.log_prob", {0.0});
  moved(kHalf, kThreeQuarters, -1.0).gives("loss", {-term}).gives("gradient.log_prob", {1.5});
  moved(kHalf, kThreeQuarters, 1.0)
      .with("divergence_high", 0.3)
      .gives("loss", {term})
      .gives("gradient.log_prob", {-1.5});
  // Downwards, 1/2 to 1/4: w = 1/2.
  moved(kHalf, kQuarter, -1.0).gives("loss", {0.0}).gives("gradient.log_prob", {0.0});
  moved(kHalf, kQuarter, 1.0).gives("loss", {kLn2}).gives("gradient.log_prob", {-0.5});
  moved(kHalf, kQuarter, -1.0).with("divergence_low", 0.3).gives("gradient.log_prob", {0.5});
  moved(kHalf, kQuarter, -1.0).with("divergence_high", 0.3).gives("gradient.log_prob", {0.0});
}

TEST(WorkedDppo, AsksTheProbabilityNotTheRatio) {
  // From 1/64 to 1/8 is eight times as much, and 7/64.
  moved(-6.0 * kLn2, -3.0 * kLn2, 1.0)
      .gives("loss", {24.0 * kLn2})
      .gives("gradient.log_prob", {-8.0});
  // From 5/8 to 7/8 is 1.4 times as much, and 1/4.
  moved(std::log(0.625), std::log(0.875), 1.0).gives("gradient.log_prob", {0.0});
}

TEST(WorkedDppo, TakesTheDivergenceOfTheTokenAndAllOthers) {
  // Eq. 14, q = 1/2, p = 3/4: 1/2 ln(2/3) + 1/2 ln 2 = 1/2 ln(4/3) = 0.14384..., either way round.
  by_kl(kHalf, kThreeQuarters, 1.0).gives("gradient.log_prob", {-1.5});
  by_kl(kHalf, kThreeQuarters, 1.0)
      .with("divergence_high", 0.144)
      .gives("gradient.log_prob", {-1.5});
  by_kl(kHalf, kThreeQuarters, 1.0)
      .with("divergence_high", 0.1438)
      .gives("gradient.log_prob", {0.0});
  by_kl(kHalf, kThreeQuarters, -1.0)
      .with("divergence_low", 0.001)
      .gives("gradient.log_prob", {1.5});
  by_kl(kHalf, kQuarter, -1.0).with("divergence_low", 0.144).gives("gradient.log_prob", {0.5});
  by_kl(kHalf, kQuarter, -1.0).with("divergence_low", 0.1438).gives("gradient.log_prob", {0.0});
  // q = 3/4, p = 1/2: 3/4 ln(3/2) - 1/4 ln 2 = 0.13081...
  by_kl(kThreeQuarters, kHalf, -3.0)
      .with("divergence_low", 0.1309)
      .gives("gradient.log_prob", {2.0});
  by_kl(kThreeQuarters, kHalf, -3.0)
      .with("divergence_low", 0.1308)
      .gives("gradient.log_prob", {0.0});
}

TEST(WorkedDppo, AddsEpsilonToWhatAProbabilityLeaves) {
  // q = 9/10, p = 1: 9/10 ln(9/10) + 1/10 ln((1/10 + 1/100) 100) = 0.144965...; w = 10/9.
  const auto certain = [](double old, double bound) {
    return by_kl(std::log(old), 0.0, 9.0).with("divergence_high", bound);
  };
  certain(0.9, 0.145)
      .with("epsilon", 0.01)
      .gives("loss", {0.0})
      .gives("gradient.log_prob", {-10.0});
  certain(0.9, 0.1449).with("epsilon", 0.01).gives("gradient.log_prob", {0.0});
  // q = 99/100 beside 1e-8: 99/100 ln(99/100) + 1/100 ln(10^6 + 1) = 0.128205...
  certain(0.99, 0.1283).gives("gradient.log_prob", {-9.0 / 0.99});
  certain(0.99, 0.1281).gives("gradient.log_prob", {0.0});
  // A token that was certain and is has not moved.
  certain(1.0, 0.001).with("epsilon", 0.0).gives("gradient.log_prob", {-9.0});
}

TEST(WorkedDppo, BoundsTheWeight) {
  // From 1/128 to 1/4, 0.2421875: w = 32.
  const auto heavy = [] { return moved(-7.0 * kLn2, kQuarter, 1.0).with("divergence_high", 0.25); };
  heavy().gives("loss", {40.0 * kLn2}).gives("gradient.log_prob", {-20.0});
  heavy().with("weight_high", 3.0).gives("gradient.log_prob", {-3.0});
  heavy()
      .with("weight_high", None{})
      .gives("loss", {64.0 * kLn2})
      .gives("gradient.log_prob", {-32.0});
  heavy()
      .with("weight_high", None{})
      .with("log_ratio_clamp", 1.0)
      .gives("gradient.log_prob", {-std::exp(1.0)});
}

TEST(WorkedDppo, MayLetTheGradientFlowThroughTheWeight) {
  // Eq. 11: -M w A, whose gradient is the same within the weight's bounds, and 0 beyond them.
  const auto by_weight = [](double old, double now, double advantage) {
    return moved(old, now, advantage).with("surrogate", "weight");
  };
  by_weight(-6.0 * kLn2, -3.0 * kLn2, 2.0)
      .gives("loss", {-16.0})
      .gives("gradient.log_prob", {-16.0});
  by_weight(kHalf, kThreeQuarters, 1.0).gives("loss", {0.0}).gives("gradient.log_prob", {0.0});
  by_weight(-7.0 * kLn2, kQuarter, 1.0)
      .with("divergence_high", 0.25)
      .gives("loss", {-20.0})
      .gives("gradient.log_prob", {0.0});
  by_weight(-6.0 * kLn2, -3.0 * kLn2, 1.0)
      .with("log_ratio_clamp", 1.0)
      .gives("loss", {-std::exp(1.0)})
      .gives("gradient.log_prob", {0.0});
}

}  // namespace
}  // namespace lossgate::reference
