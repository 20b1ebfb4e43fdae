// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/even_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lossgate {
namespace {

using Parts = std::vector<Split::Part>;

LossSignature signature_of(EmptyRows empty_rows = EmptyRows::skipped) {
  LossSignature signature;
  signature.fields = {{.name = "mask",
                       .role = Role::mask,
                       .quantity = Quantity::mask,
                       .axes = {Axis::sequences, Axis::tokens},
                       .dtypes = {Dtype::u8}}};
  signature.mask = "mask";
  signature.even_parts = true;
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
              EmptyRows empty_rows = EmptyRows::skipped) {
  return has_even_parts(signature_of(empty_rows), case_of(tokens, world, parts));
}

Split made_even(const std::vector<int>& tokens, int world, const Parts& parts,
                EmptyRows empty_rows = EmptyRows::skipped) {
  Case c = case_of(tokens, world, parts);
  make_parts_even(signature_of(empty_rows), c);
  EXPECT_TRUE(has_even_parts(signature_of(empty_rows), c));
  return c.split;
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

TEST(EvenParts, AreAsManyOnEveryRank) {
  EXPECT_TRUE(are_even({1, 1, 1, 1}, 2, {{0, {0}}, {1, {1}}, {0, {2}}, {1, {3}}}));
  EXPECT_FALSE(are_even({1, 1, 1}, 2, {{0, {0}}, {1, {1}}, {0, {2}}}));
  EXPECT_FALSE(are_even({1, 1}, 3, {{0, {0}}, {1, {1}}})) << "an idle rank is averaged, too";
}

TEST(EvenParts, MayBeAnyWhereNothingCountsOrNobodyPromisedThem) {
  EXPECT_TRUE(are_even({0, 0, 0}, 1, {{0, {0, 1}}, {0, {2}}}));
  EXPECT_TRUE(are_even({1, 1, 1}, 1, {}));
  LossSignature signature = signature_of();
  signature.even_parts = false;
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
  EXPECT_EQ(four.parts, (Parts{{0, {0}}, {1, {1}}, {0, {2}}, {1, {3}}}));
  const Split idle = made_even({1, 1}, 65, {{0, {0}}, {1, {1}}});
  EXPECT_EQ(idle.world, 2);
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
