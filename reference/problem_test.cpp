// SPDX-License-Identifier: Apache-2.0
#include "reference/problem.h"

#include <gtest/gtest.h>

#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// Of a batch that is dealt out so: the rank of each micro-batch.
std::int64_t averaged(int world, const std::vector<int>& ranks) {
  const LossSignature& signature = find_loss("value_clip")->signature;
  Case c = zero_case(signature, 0, 0);
  c.split.world = world;
  for (const int rank : ranks) c.split.parts.push_back({.rank = rank, .sequences = {}});
  return Problem(signature, c).accumulation.averaged;
}

TEST(Problem, CountsTheMostResultsThatAStepMayAverage) {
  EXPECT_EQ(averaged(1, {}), 1) << "a whole batch";
  EXPECT_EQ(averaged(1, {0}), 1);
  EXPECT_EQ(averaged(1, {0, 0, 0}), 3) << "micro-batches";
  EXPECT_EQ(averaged(3, {0, 1, 2}), 3) << "ranks";
  EXPECT_EQ(averaged(2, {0, 1, 0}), 4) << "two micro-batches on one of two ranks";
  EXPECT_EQ(averaged(2, {1, 1, 1}), 6);
}

/// Two sequences of four positions, three of which count in one and one in the other.
Case ragged_case(const LossSignature& signature, Reduction reduction) {
  Case c = zero_case(signature, 2, 4);
  c.spec.reduction = reduction;
  for (const std::int64_t counts : {1, 2, 3, 4}) c.batch.at("mask").set(counts, 1.0);
  return c;
}

double positions_per_counted(Reduction reduction) {
  const LossSignature& signature = find_loss("value_clip")->signature;
  const Case c = ragged_case(signature, reduction);
  return Problem(signature, c).positions_per_counted();
}

double largest_divisor(Reduction reduction) {
  const LossSignature& signature = find_loss("grpo")->signature;
  Case c = ragged_case(signature, reduction);
  c.spec.set("max_length", 16.0);
  return Problem(signature, c).largest_divisor();
}

TEST(Problem, SaysHowManyTimesMorePositionsAPaddedBatchHasThanAMeanDividesBy) {
  EXPECT_EQ(positions_per_counted(Reduction::token_mean), 3.0 * 7.0 / 4.0);
  EXPECT_EQ(positions_per_counted(Reduction::sequence_mean), 7.0);
  EXPECT_EQ(positions_per_counted(Reduction::sum), 1.0);
}

TEST(Problem, SaysByHowMuchATermOfTheLossIsDividedAtMost) {
  EXPECT_EQ(largest_divisor(Reduction::token_mean), 4.0);
  EXPECT_EQ(largest_divisor(Reduction::sequence_mean), 6.0);
  EXPECT_EQ(largest_divisor(Reduction::seq_mean_token_sum_norm), 32.0);
  EXPECT_EQ(largest_divisor(Reduction::sum), 1.0);
}

}  // namespace
}  // namespace lossgate::reference
