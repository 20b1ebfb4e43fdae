// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/even_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lossgate {
namespace {

using Parts = std::vector<Split::Part>;

/// What its trainer averages.
enum class Averaged { parts, ranks, both };

LossSignature signature_of(EmptyRows empty_rows = EmptyRows::skipped,
                           Averaged averaged = Averaged::both) {
  LossSignature signature;
  signature.fields = {{.name = "mask",
                       .role = Role::mask,
                       .quantity = Quantity::mask,
                       .axes = {Axis::sequences, Axis::tokens},
                       .dtypes = {Dtype::u8}}};
  signature.mask = "mask";
  signature.even_parts = averaged != Averaged::ranks;
  signature.even_ranks = averaged != Averaged::parts;
  signature.empty_rows = empty_rows;
  return signature;
}

/// Sequences of two tokens, of which so many are valid.
Case case_of(const std::vector<int>& tokens, int world, Parts parts) {
  const auto sequences = static_cast<std::int64_t>(tokens.size());
  Case c;
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = 2;
  Tensor mask = Tensor::zeros(Dtype::u8, {sequences, 2});
  for (std::int64_t s = 0; s < sequences; ++s) {
    for (int t = 0; t < tokens[static_cast<std::size_t>(s)]; ++t) mask.set(2 * s + t, 1.0);
  }
  c.batch.fields = {{"mask", mask}};
  c.split = {.world = world, .parts = std::move(parts)};
  return c;
}

bool are_even(const std::vector<int>& tokens, int world, const Parts& parts,
              EmptyRows empty_rows = EmptyRows::skipped, Averaged averaged = Averaged::both) {
  return has_even_parts(signature_of(empty_rows, averaged), case_of(tokens, world, parts));
}

Split made_even(const std::vector<int>& tokens, int world, const Parts& parts,
                EmptyRows empty_rows = EmptyRows::skipped, Averaged averaged = Averaged::both) {
  Case c = case_of(tokens, world, parts);
  make_parts_even(signature_of(empty_rows, averaged), c);
  EXPECT_TRUE(has_even_parts(signature_of(empty_rows, averaged), c));
  return c.split;
}

/// Of parts of one token each, under what is averaged.
bool are_even(int world, const Parts& parts, Averaged averaged) {
  return are_even(std::vector<int>(6, 1), world, parts, EmptyRows::skipped, averaged);
}
Split made_even(int world, const Parts& parts, Averaged averaged) {
  return made_even(std::vector<int>(6, 1), world, parts, EmptyRows::skipped, averaged);
}

/// The weight of each sequence where both are averaged, of a function that divides by its own.
std::vector<double> weights(const Split& split, std::size_t sequences) {
  std::vector<double> all(sequences);
  for (const Split::Part& part : split.parts) {
    const auto of_rank = std::ranges::count(split.parts, part.rank, &Split::Part::rank);
    for (const std::int64_t s : part.sequences) {
      all[static_cast<std::size_t>(s)] =
          1.0 / (split.world * static_cast<double>(of_rank) * std::ssize(part.sequences));
    }
  }
  return all;
}

TEST(EvenParts, HoldEquallyManySequencesHoweverManyTokensTheseHave) {
  EXPECT_TRUE(are_even({1, 2, 2, 1}, 1, {{0, {0, 3}}, {0, {2, 1}}}));
  EXPECT_FALSE(are_even({1, 1, 1, 1}, 1, {{0, {0, 3, 1}}, {0, {2}}}));
  EXPECT_FALSE(are_even({1, 1}, 1, {{0, {0, 1}}, {0, {}}})) << "it counts where parts are averaged";
}

TEST(EvenParts, LeaveOutSequencesThatAMeanLeavesOut) {
  const Parts of_rows = {{0, {0, 1}}, {0, {2, 3}}}, of_live_ones = {{0, {0}}, {0, {1, 2, 3}}};
  const std::vector<int> tokens = {2, 1, 0, 0};
  EXPECT_FALSE(are_even(tokens, 1, of_rows));
  EXPECT_TRUE(are_even(tokens, 1, of_rows, EmptyRows::counted));
  EXPECT_TRUE(are_even(tokens, 1, of_live_ones));
  EXPECT_FALSE(are_even(tokens, 1, of_live_ones, EmptyRows::counted));
}

TEST(EvenParts, AreThoseOfOneRankWhereMicroBatchesAloneAreAveraged) {
  using enum Averaged;
  const Parts of_rank = {{0, {0, 1}}, {1, {2}}, {0, {3, 4}}, {1, {5}}};
  EXPECT_TRUE(are_even(2, of_rank, parts)) << "ranks may differ";
  EXPECT_FALSE(are_even(2, of_rank, ranks));
  EXPECT_FALSE(are_even(2, of_rank, both));
  EXPECT_TRUE(are_even(3, of_rank, parts)) << "nothing is averaged over an idle rank";
  EXPECT_FALSE(are_even(2, {{0, {0, 1}}, {0, {2}}, {1, {3, 4, 5}}}, parts));
  EXPECT_FALSE(are_even(2, {{0, {0, 1, 2}}, {0, {}}, {1, {3, 4, 5}}}, parts));
}

TEST(EvenParts, AreTheTotalsOfRanksWhereRanksAloneAreAveraged) {
  using enum Averaged;
  const Parts of_ranks = {{0, {0, 1}}, {1, {2, 5, 4}}, {0, {3}}};
  EXPECT_TRUE(are_even(2, of_ranks, ranks)) << "micro-batches may differ";
  EXPECT_FALSE(are_even(2, of_ranks, parts));
  EXPECT_FALSE(are_even(2, of_ranks, both));
  EXPECT_FALSE(are_even(3, of_ranks, ranks)) << "an idle rank is averaged, too";
  EXPECT_TRUE(are_even(1, {{0, {0, 1, 2, 3}}, {0, {}}, {0, {4, 5}}}, ranks)) << "of one";
}

TEST(EvenParts, WeighEverySequenceAlikeWhereBothAreAveragedAndNoOthersDo) {
  const Parts splits[] = {{{0, {0, 1}}, {1, {2, 3}}, {0, {4}}, {1, {5}}},
                          {{0, {0, 1, 2}}, {1, {3}}, {1, {4}}, {1, {5}}},
                          {{0, {0, 1, 2}}, {1, {3, 4, 5}}},
                          {{0, {0, 1}}, {0, {2, 3}}, {1, {4, 5}}},
                          {{0, {0}}, {1, {1}}, {0, {2}}, {1, {3}}, {0, {4}}, {1, {5}}}};
  int even = 0;
  for (const Parts& parts : splits) {
    const std::vector<double> each = weights({.world = 2, .parts = parts}, 6);
    const bool alike =
        std::ranges::all_of(each, [](double w) { return std::fabs(w - 1.0 / 6.0) < 1e-12; });
    EXPECT_EQ(are_even(2, parts, Averaged::both), alike) << even;
    even += alike;
  }
  EXPECT_EQ(even, 3) << "one rank with more micro-batches than the other among them";
}

TEST(EvenParts, MayBeAnyWhereNothingCountsOrNobodyPromisedThem) {
  EXPECT_TRUE(are_even({0, 0, 0}, 1, {{0, {0, 1}}, {0, {2}}}));
  EXPECT_TRUE(are_even({1, 1, 1}, 1, {}));
  LossSignature signature = signature_of();
  signature.even_parts = signature.even_ranks = false;
  Case c = case_of({1, 1, 1}, 1, {{0, {0, 1}}, {0, {2}}});
  EXPECT_TRUE(has_even_parts(signature, c));
  make_parts_even(signature, c);
  EXPECT_EQ(c.split.parts, (Parts{{0, {0, 1}}, {0, {2}}}));
}

TEST(EvenParts, AreLeftToOthersToRefuseWhereTheyNameNoSequence) {
  EXPECT_FALSE(are_even({1, 1}, 1, {{0, {0}}, {0, {7}}}));
  EXPECT_FALSE(are_even({1, 1}, 1, {{0, {0}}, {0, {-1}}}));
}

TEST(EvenParts, AreMadeInTheOrderOfTheSequencesAsManyAsComeOutEven) {
  EXPECT_EQ(made_even({1, 1, 1, 1}, 1, {{0, {3, 1, 0}}, {0, {2}}}).parts,
            (Parts{{0, {3, 1}}, {0, {0, 2}}}));
  EXPECT_EQ(made_even({1, 1, 1}, 1, {{0, {0, 1}}, {0, {2}}}).parts,
            (Parts{{0, {0}}, {0, {1}}, {0, {2}}}));
  EXPECT_EQ(made_even({0, 1, 0, 1, 0}, 1, {{0, {0, 1, 2, 3}}, {0, {4}}}).parts,
            (Parts{{0, {0, 1, 2}}, {0, {3, 4}}}));
  EXPECT_EQ(made_even({0, 1, 0, 1}, 1, {{0, {0, 1, 2}}, {0, {3}}}, EmptyRows::counted).parts,
            (Parts{{0, {0, 1}}, {0, {2, 3}}}));
}

TEST(EvenParts, AreMadeForAsManyRanksAsTheyAllow) {
  const Split four = made_even({1, 1, 1, 1}, 3, {{0, {0}}, {1, {1}}, {2, {2, 3}}});
  EXPECT_EQ(four.world, 2);
  EXPECT_EQ(four.parts, (Parts{{0, {0}}, {0, {1}}, {1, {2, 3}}}));
  const Split idle = made_even({1, 1}, 65, {{0, {0}}, {1, {1}}});
  EXPECT_EQ(idle.world, 2);
}

TEST(EvenParts, AreMadeOnTheRanksThatTheyHadWhereTheseNeedNotBeEven) {
  const Split split =
      made_even(3, {{0, {0, 1, 2}}, {1, {4}}, {0, {3}}, {1, {}}, {1, {5}}}, Averaged::parts);
  EXPECT_EQ(split.world, 3);
  EXPECT_EQ(split.parts, (Parts{{0, {0, 1}}, {0, {2, 3}}, {1, {4}}, {1, {5}}}));
}

TEST(EvenParts, StayWhatTheyAreOnEvenRanksButForOneThatTwoOfTheseShare) {
  const Split split =
      made_even(2, {{1, {5}}, {0, {0, 1, 2, 3}}, {0, {}}, {1, {4}}}, Averaged::ranks);
  EXPECT_EQ(split.world, 2);
  EXPECT_EQ(split.parts, (Parts{{0, {5}}, {0, {0, 1}}, {1, {2, 3}}, {1, {}}, {1, {4}}}));
  const Split prime =
      made_even({1, 1, 1, 0}, 2, {{0, {0, 1}}, {1, {2, 3}}}, EmptyRows::skipped, Averaged::ranks);
  EXPECT_EQ(prime.world, 1) << "three do not come out even on two";
  EXPECT_EQ(prime.parts, (Parts{{0, {0, 1}}, {0, {2, 3}}}));
}

TEST(EvenParts, AreNoneWhereSequencesComeOutEvenInTooManyPartsAlone) {
  EXPECT_TRUE(made_even({1, 0}, 2, {{0, {0}}, {1, {1}}}).whole());
  const std::vector<int> prime(97, 1);
  std::vector<std::int64_t> all(97);
  for (std::size_t s = 0; s < all.size(); ++s) all[s] = static_cast<std::int64_t>(s);
  const Split split = made_even(
      prime, 1, {{0, {all.begin(), all.begin() + 50}}, {0, {all.begin() + 50, all.end()}}});
  EXPECT_TRUE(split.whole());
  EXPECT_EQ(split.world, 1);
}

}  // namespace
}  // namespace lossgate
