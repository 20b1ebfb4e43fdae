// SPDX-License-Identifier: Apache-2.0
#include "properties/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// Four tokens count in the first sequence, one in the second, none in the third.
Case ragged() {
  Case c = grpo_case(3, 4);
  for (std::int64_t t = 0; t < 4; ++t) mask_out(c, 2, t);
  for (std::int64_t t = 1; t < 4; ++t) mask_out(c, 1, t);
  return c;
}

TEST(BatchCounts, AreThoseOfTheSequencesThatAreAsked) {
  const CaseStudy study(grpo(), ragged());
  const BatchCounts all(study), two(study, {1, 2});
  EXPECT_EQ(all.positions(), 12.0);
  EXPECT_EQ(all.tokens, 5.0);
  EXPECT_EQ(all.sequences, 2.0);
  EXPECT_EQ(all.row_tokens, (std::vector<double>{4.0, 1.0, 0.0}));
  EXPECT_EQ(two.rows, 2.0);
  EXPECT_EQ(two.tokens, 1.0);
  EXPECT_EQ(two.sequences, 1.0);
}

TEST(TokenWeight, IsWhatEachReductionDividesBy) {
  const CaseStudy study(grpo(), ragged());
  const BatchCounts counts(study);
  LossSpec spec = study.whole().spec;
  spec.set("max_length", 16.0);
  spec.set("num_items", 8.0);
  const auto weight = [&](Reduction reduction, std::size_t row) {
    return token_weight(spec, reduction, counts, row);
  };
  EXPECT_EQ(weight(Reduction::sum, 0), 1.0);
  EXPECT_EQ(weight(Reduction::token_mean, 0), 1.0 / 5);
  EXPECT_EQ(weight(Reduction::sequence_mean, 0), 1.0 / 8);
  EXPECT_EQ(weight(Reduction::sequence_mean, 1), 1.0 / 2);
  EXPECT_EQ(weight(Reduction::seq_mean_token_sum_norm, 1), 1.0 / 32);
  EXPECT_EQ(weight(Reduction::sum_over_items, 1), 1.0 / 8);
}

TEST(RowFactor, IsANumberWithinItsErrorAndAShareOfItself) {
  EXPECT_TRUE((RowFactor{1.0, 0.0}.is(1.0)));
  EXPECT_TRUE((RowFactor{0.0, 0.0}.is(0.0)));
  EXPECT_TRUE((RowFactor{1.0, 0.25}.is(1.25)));
  EXPECT_TRUE((RowFactor{1.0, 0.0}.is(1.0 + 1.0 / 4096)));
  EXPECT_FALSE((RowFactor{1.0, 0.0}.is(1.0 + 2.0 / 4096)));
  EXPECT_FALSE((RowFactor{0.0, 0.0}.is(1e-300)));
  EXPECT_FALSE((RowFactor{1.0, 0.25}.is(HUGE_VAL)));
  EXPECT_FALSE((RowFactor{1.0, 0.25}.is(std::nan(""))));
}

TEST(RowFactors, OfTheLossAreThoseOfEverySequenceThatHasAToken) {
  const auto doubled = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "loss"), [](double x) { return 2.0 * x; });
  });
  for (const std::int64_t empty : {0, 1, 2}) {
    Case c = grpo_case(3, 4);
    for (std::int64_t t = 0; t < 4; ++t) mask_out(c, empty, t);
    const auto reading = Reading::of(grpo(), doubled, c);
    ASSERT_TRUE(reading);
    const RowFactors factors = row_factors(*reading);
    EXPECT_EQ(factors.size(), 2U) << empty;
    for (const std::size_t row : {0, 1, 2}) {
      const auto factor = factors.find(row);
      ASSERT_EQ(factor != factors.end(), std::cmp_not_equal(row, empty)) << row;
      if (factor != factors.end()) EXPECT_TRUE(factor->second.is(2.0));
    }
  }
}

}  // namespace
}  // namespace lossgate::properties
