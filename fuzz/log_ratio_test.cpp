// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/log_ratio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fuzz/census.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

/// How far two policies are apart, at 4 times `tokens` positions of a nasty case.
std::vector<double> distances(std::uint64_t seed, std::int64_t tokens, double edge, bool twin,
                              double unit = 1.0) {
  const Field field{.name = "x", .axes = {Axis::sequences, Axis::tokens}};
  EdgeList edges;
  edges.add(Dtype::f32, edge);
  Tensor now = Tensor::zeros(Dtype::f32, {4, tokens}), old = now;
  Column columns[] = {{&field, &now}, {&field, &old, twin}};
  Choices choices(seed);
  draw_log_probs(columns, edges, Temper::nasty, choices, unit);
  std::vector<double> apart;
  for (std::int64_t i = 0; i < now.size(); ++i) apart.push_back(std::fabs(now.at(i) - old.at(i)));
  return apart;
}

TEST(LogRatios, OfNastyRowsOfOneCaseAreOfSeveralKinds) {
  int several = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<double> apart = distances(seed, 8, 20.0, false);
    const auto equal = [](double distance) { return distance < 1.0; };
    const auto huge = [](double distance) { return distance > 1e30; };
    several += std::ranges::any_of(apart, equal) && std::ranges::any_of(apart, huge);
  }
  EXPECT_GT(several, 150);
}

TEST(LogRatios, OfTwinsAreZeroOrNearlyThroughoutNowAndThen) {
  int equal = 0, near = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const double farthest = std::ranges::max(distances(seed, 8, 20.0, true));
    equal += farthest == 0.0;
    near += farthest > 1e-5 && farthest < 1e-2;
  }
  EXPECT_GT(equal, 20);
  EXPECT_GT(near, 8) << "the only cases that a loss fails which takes them for equal";
}

TEST(LogRatios, OfAnswersAreZeroThroughoutNowAndThenThoughTwoPoliciesGaveThem) {
  for (const char* loss : {"dpo", "kto"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    int equal = 0;
    for (std::uint64_t i = 0; i < 1500; ++i) {
      const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
      bool all = c.shape[Axis::sequences] > 3;
      for (const ReachAxis& axis : signature.reach) {
        const Tensor &of = c.batch.at(axis.field), &own = c.batch.at(axis.towards);
        for (std::int64_t s = 0; s < own.size(); ++s) all &= of.at(s) == own.at(s);
      }
      equal += all;
    }
    EXPECT_GT(equal, 30) << loss;
  }
}

TEST(LogRatios, AreToPoliciesOfZerosNowAndThen) {
  for (const char* loss : {"dpo", "grpo", "kto"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    int zeros = 0;
    for (std::uint64_t i = 0; i < 1500; ++i) {
      const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
      bool all = true, own = false;
      for (const ReachAxis& axis : signature.reach) {
        const Tensor &other = c.batch.at(axis.field), &policy = c.batch.at(axis.towards);
        for (std::int64_t at = 0; at < policy.size(); ++at) {
          all &= other.at(at) == 0.0;
          own |= policy.at(at) != 0.0;
        }
      }
      zeros += all && own;
    }
    EXPECT_GT(zeros, 4) << loss;  // of grpo a sentinel lies behind the mask of most
  }
}

TEST(LogRatios, ThatAreScaledAreHostileOnceTheyAre) {
  constexpr double kUnit = 1000.0;  // of an option of 0.001
  int scaled = 0, unscaled = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const double distance : distances(seed, 1, 88.7228, false, kUnit)) {
      scaled += std::fabs(distance / kUnit - 88.7228) < 1e-3;
      unscaled += std::fabs(distance - 88.7228) < 1e-3;
    }
  }
  EXPECT_GT(scaled, 100);
  EXPECT_GT(unscaled, 40) << "and now and then they are as they were";
}

}  // namespace
}  // namespace lossgate::fuzz
