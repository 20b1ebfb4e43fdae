// SPDX-License-Identifier: Apache-2.0
#include "fuzz/long_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "fuzz/acceptance.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

constexpr Tier kFull = {Axis::tokens, 256, 256};

TEST(DrawLongMask, PadsAllSequencesButTheLastByWholeBlocks) {
  const LossSignature& signature = *reference::find_signature("grpo");
  std::set<bool> on_the_left, with_an_empty_one;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c = draw_long_case(seed, signature, {kFull, Dtype::f32, LongForm::padded});
    EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << seed;
    const std::vector<bool> valid = valid_positions(signature, c);
    const std::int64_t rows = c.shape[Axis::sequences];
    ASSERT_GE(rows, 3) << seed;
    std::int64_t empty = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto first = valid.begin() + row * 256;
      const auto count = std::count(first, first + 256, true);
      if (row + 1 == rows) {
        EXPECT_EQ(count, 256) << seed;
        continue;
      }
      EXPECT_LE(count, 192) << seed;
      empty += count == 0;
      if (count == 0) continue;
      EXPECT_GE(count, 64) << seed;
      EXPECT_NE(first[0], first[255]) << "on one side";
      on_the_left.insert(!first[0]);
    }
    with_an_empty_one.insert(empty > 0);
  }
  EXPECT_EQ(on_the_left.size(), 2u);
  EXPECT_TRUE(with_an_empty_one.contains(true));
}

TEST(DrawLongMask, PadsOnTheRightAloneAndNoWholeSequenceWhereTheCallerSaysSo) {
  LossSignature signature = *reference::find_signature("grpo");
  signature.prefix_mask = true;
  signature.empty_rows = EmptyRows::counted;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c = draw_long_case(seed, signature,
                                  {kFull, Dtype::f32, LongForm::padded, Reduction::sequence_mean});
    const std::vector<bool> valid = valid_positions(signature, c);
    for (std::size_t first = 0; first < valid.size(); first += 256) EXPECT_TRUE(valid[first]);
  }
}

TEST(DrawLongMask, HasLabelsWhereBlocksOfAVocabularyMeet) {
  const LossSignature& signature = *reference::find_signature("cross_entropy");
  constexpr Tier kRows = {Axis::vocab, 16384 + 128, 16384 + 128};
  std::set<std::int64_t> labels;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Case c = draw_long_case(seed, signature, {kRows, Dtype::f32});
    ASSERT_GE(c.batch.at("label").size(), 2) << seed;
    labels.insert(c.batch.at("label").integer_at(1));
  }
  EXPECT_EQ(labels, (std::set<std::int64_t>{8255, 8256, 16383, 16384}));
}

TEST(DrawLongMask, HidesWhatNobodyMayReadWhereCallersPromiseNothing) {
  LossSignature signature = *reference::find_signature("grpo");
  const auto hidden = [&] {
    int found = 0;
    for (const Length& length : lengths_of(1, signature, kFloats)) {
      if (!hides(length)) continue;
      const Case c = draw_long_case(1, signature, length);
      const Tensor &values = c.batch.at("log_prob"), &mask = c.batch.at("mask");
      bool strange = false;
      for (std::int64_t i = 0; i < values.size(); ++i) {
        const double x = values.at(i);
        EXPECT_TRUE(mask.at(i) == 0.0 || (x <= 0.0 && x > -1e4)) << "what counts is plain";
        strange |= x != x || x > 0.0 || x < -1e4;
      }
      found += strange;
    }
    return found;
  };
  EXPECT_GE(hidden(), 3);
  for (Field& field : signature.fields) field.masked = Masked::zero;
  EXPECT_EQ(hidden(), 0);
}

}  // namespace
}  // namespace lossgate::fuzz
