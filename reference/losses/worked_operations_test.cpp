// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

/// Two groups side by side and one sequence of its own: rewards 1, 4, 3, 8, 7 of prompts a b a b c.
Worked groups() {
  return Worked("group_advantage", {{Axis::sequences, 5}})
      .with("epsilon", 0.01)
      .field("reward", {1.0, 4.0, 3.0, 8.0, 7.0})
      .field("group", {0.0, 1.0, 0.0, 1.0, 2.0});
}

TEST(WorkedGroupAdvantage, IsRelativeToTheOtherMembersWhereverTheyStand) {
  // Means 2 and 6; deviations by n - 1: sqrt(2) and sqrt(8), by n: 1 and 2.
  const double a = std::sqrt(2.0) + 0.01, b = std::sqrt(8.0) + 0.01;
  groups().gives("advantage", {-1.0 / a, -2.0 / b, 1.0 / a, 2.0 / b, 0.0});
  groups()
      .with("scale", "population_std")
      .gives("advantage", {-1.0 / 1.01, -2.0 / 2.01, 1.0 / 1.01, 2.0 / 2.01, 0.0});
  groups().with("scale", "unscaled").gives("advantage", {-1.0, -2.0, 1.0, 2.0, 0.0});
  groups()
      .with("scale", "unscaled")
      .with("baseline", "leave_one_out")
      .gives("advantage", {-2.0, -4.0, 2.0, 4.0, 0.0});
}

TEST(WorkedGroupAdvantage, OfAnOnlyMemberIsZeroOrItsReward) {
  groups()
      .with("singleton", "reward")
      .with("scale", "unscaled")
      .gives("advantage", {-1.0, -2.0, 1.0, 2.0, 7.0});
  Worked("group_advantage", {{Axis::sequences, 1}})
      .with("epsilon", 0.01)
      .with("singleton", "reward")
      .field("reward", {7.0})
      .gives("advantage", {7.0 / 1.01});
}

TEST(WorkedGroupAdvantage, OfEqualRewardsIsZero) {
  Worked("group_advantage", {{Axis::sequences, 3}})
      .field("reward", {0.5, 0.5, 0.5})
      .gives("advantage", {0.0, 0.0, 0.0});
}

/// Tokens 0 and 2 of three count.
Worked estimate() {
  return Worked("gae", {{Axis::sequences, 1}, {Axis::tokens, 4}})
      .with("gamma", 0.5)
      .with("lambda", 0.5)
      .field("reward", {1.0, 9.0, 2.0, 9.0})
      .field("value", {0.5, 7.0, 0.25, 7.0})
      .field("mask", {1.0, 0.0, 1.0, 0.0});
}

TEST(WorkedGae, CarriesOnOverMaskedTokens) {
  // a[2] = 2 - 0.25; a[0] = 1 + 0.5 0.25 - 0.5 + 0.25 a[2].
  estimate().gives("advantage", {1.0625, 0.0, 1.75, 0.0}).gives("return", {1.5625, 0.0, 2.0, 0.0});
  // One step, and the rest of the way.
  estimate().with("lambda", 0.0).gives("advantage", {0.625, 0.0, 1.75, 0.0});
  estimate().with("gamma", 1.0).with("lambda", 1.0).gives("return", {3.0, 0.0, 2.0, 0.0});
}

TEST(WorkedGae, WhitensOverValidTokens) {
  // Of 1.0625 and 1.75: half their distance d each, over sqrt(2 d^2 + 0.01); returns stay.
  const double d = 0.34375, deviation = std::sqrt(2.0 * d * d + 0.01);
  estimate()
      .with("whiten", 1.0)
      .with("epsilon", 0.01)
      .gives("advantage", {-d / deviation, 0.0, d / deviation, 0.0})
      .gives("return", {1.5625, 0.0, 2.0, 0.0});
}

TEST(WorkedWhitening, HasMeanZeroOrTheMeanThatThereWas) {
  Worked whitening("whitening", {{Axis::sequences, 2}, {Axis::tokens, 2}});
  whitening.with("epsilon", 0.0078125)
      .field("advantage", {1.0, 3.0, 5.0, 100.0})
      .field("mask", {1.0, 1.0, 1.0, 0.0});
  const double deviation = std::sqrt(4.0078125);
  whitening.gives("whitened", {-2.0 / deviation, 0.0, 2.0 / deviation, 0.0});
  whitening.with("shift_mean", 0.0)
      .gives("whitened", {3.0 - 2.0 / deviation, 3.0, 3.0 + 2.0 / deviation, 0.0});
}

TEST(WorkedWhitening, OfOneTokenOrNoneIsZero) {
  Worked one("whitening", {{Axis::sequences, 1}, {Axis::tokens, 2}});
  one.field("advantage", {7.0, 7.0}).field("mask", {0.0, 1.0}).gives("whitened", {0.0, 0.0});
  one.field("mask", {0.0, 0.0}).gives("whitened", {0.0, 0.0});
}

// ---- rollout correction -------------------------------------------------------------------------

/// Tokens 0, 1 and 3 of four count, with log-ratios ln 2, ln 3 and -ln 4.
Worked correction(const std::string& level) {
  return Worked("rollout_correction", {{Axis::sequences, 1}, {Axis::tokens, 4}})
      .with("level", level)
      .with("weight_low", 0.5)
      .with("weight_high", 2.5)
      .field("old_log_prob", {-1.0, -1.0, -7.0, -1.0 - 2.0 * kLn2})
      .field("sampler_log_prob", {-1.0 - kLn2, -1.0 - kLn3, 0.0, -1.0})
      .field("mask", {1.0, 1.0, 0.0, 1.0});
}

TEST(WorkedRolloutCorrection, WeighsTokensOrSequences) {
  correction("token").gives("weight", {2.0, 2.5, 0.0, 0.5});
  correction("sequence").gives("weight", {1.5, 1.5, 0.0, 1.5});  // 2 x 3 / 4
  const double mean = std::cbrt(1.5);
  correction("geometric").gives("weight", {mean, mean, 0.0, mean});
}

TEST(WorkedRolloutCorrection, DropsWhatLiesOutsideItsBounds) {
  correction("token").with("beyond", "drop").gives("weight", {2.0, 0.0, 0.0, 0.0});
  correction("sequence")
      .with("beyond", "drop")
      .with("weight_high", 1.25)
      .gives("weight", {0.0, 0.0, 0.0, 0.0});
}

TEST(WorkedRolloutCorrection, OfATokenThatOneEngineRulesOutIsABoundOrDropped) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto impossible = [](const std::string& beyond) {
    return Worked("rollout_correction", {{Axis::sequences, 1}, {Axis::tokens, 2}})
        .with("beyond", beyond)
        .with("log_ratio_clamp", None{})
        .field("old_log_prob", {-1.0, -infinity})
        .field("sampler_log_prob", {-infinity, -1.0});
  };
  impossible("truncate").gives("weight", {2.0, 0.0});
  impossible("drop").with("weight_low", 0.25).gives("weight", {0.0, 0.0});
}

}  // namespace
}  // namespace lossgate::reference
