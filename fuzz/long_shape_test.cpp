// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/long_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "fuzz/acceptance.h"
#include "fuzz/long_case.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

TEST(DrawLongCase, IsLongAlongTwoAxesWhereItIsCrossed) {
  for (const char* loss : {"cross_entropy", "linear_grpo", "sparse_jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    const auto pairs = crossed_tiers(signature);
    ASSERT_EQ(pairs.size(), signature.has_axis(Axis::hidden) ? 5U : 4U) << loss;
    for (const Tier& tier : pairs) {
      const Case c = draw_long_case(1, signature, {tier, Dtype::f32, LongForm::crossed});
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << loss;
      if (tier.axis == Axis::sequences) {
        EXPECT_EQ(c.shape[Axis::sequences] * c.shape[Axis::tokens], 33 * 259) << loss;
        continue;
      }
      if (tier.axis == Axis::hidden) {
        EXPECT_GT(c.shape[Axis::hidden], 128) << loss;
        EXPECT_GT(c.shape[Axis::vocab], 512) << loss;
        continue;
      }
      if (tier.axis == Axis::vocab) {
        EXPECT_GT(c.shape[Axis::tokens] * c.shape[Axis::vocab], 1 << 20) << loss;
        continue;
      }
      const bool many = c.shape[Axis::tokens] > 512;
      EXPECT_GT(c.shape[Axis::tokens], 128) << loss;
      EXPECT_GT(c.shape[Axis::vocab], many ? 8 : 512) << loss;
      if (many && signature.has_axis(Axis::support)) EXPECT_GT(c.shape[Axis::support], 8);
    }
  }
  LossSignature narrowed = *reference::find_signature("cross_entropy");
  narrowed.longest = {{Axis::tokens, 100}};
  EXPECT_TRUE(crossed_tiers(narrowed).empty());
  narrowed.longest = {};
  narrowed.pinned = {{Axis::vocab, 4096}};
  EXPECT_TRUE(crossed_tiers(narrowed).empty()) << "35 million logits";
  const auto of_positions = crossed_tiers(*reference::find_signature("grpo"));
  ASSERT_EQ(of_positions.size(), 2U);
  EXPECT_EQ(of_positions.front().axis, Axis::sequences);
  EXPECT_GT(of_positions.front().first, 32) << "beyond the second of tiles of 16, and of 32";
  const Case many = draw_long_case(1, *reference::find_signature("grpo"),
                                   {of_positions.back(), Dtype::f32, LongForm::crossed});
  EXPECT_GT(many.batch.at("log_prob").size(), 1 << 17)
      << "a batch that is dealt to chunks of 100,000";
}

TEST(Tiers, HoldExtentsThatFillPairsAndNoVectorOfFour) {
  for (const char* loss : {"cross_entropy", "grpo", "linear_jsd", "sparse_jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    std::set<Axis> axes, all;
    for (const Tier& tier : tiers(signature)) {
      all.insert(tier.axis);
      if (tier.first % 4 != 2) continue;
      axes.insert(tier.axis);
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Case c = draw_long_case(seed, signature, {tier, Dtype::f32});
        EXPECT_EQ(c.shape[tier.axis] % 4, 2) << loss << " " << name(tier.axis);
      }
    }
    EXPECT_EQ(axes, all) << loss;
  }
}

TEST(DrawLongCase, HasRowsFarBelowZeroAndTokensFarAboveTheirRows) {
  for (const char* loss : {"cross_entropy", "jsd", "sparse_jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    int below = 0, above = 0;
    std::int64_t longest = 0;
    for (const Length& length : lengths_of(1, signature, kFloats)) {
      if (length.form != LongForm::far) continue;
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const Case c = draw_long_case(seed, signature, length);
        EXPECT_EQ(fault_of(signature, c, length.dtype), "") << loss;
        const std::int64_t vocab = c.shape[Axis::vocab];
        longest = std::max(longest, vocab);
        for (const Field& field : signature.fields) {
          if (field.quantity != Quantity::logit) continue;
          const Tensor& logits = c.batch.at(field.name);
          for (std::int64_t begin = 0; begin < logits.size(); begin += vocab) {
            double others = -HUGE_VAL;
            for (std::int64_t i = 0; i + 1 < vocab; ++i) {
              others = std::max(others, logits.at(begin + i));
            }
            const double last = logits.at(begin + vocab - 1);
            below += std::max(others, last) < -90.0;
            above += last - others > 90.0;
          }
        }
      }
    }
    EXPECT_GT(longest, 262144) << loss << ": production's, besides those that fill blocks";
    EXPECT_GE(below, 10) << loss;
    EXPECT_GE(above, 10) << loss;
  }
}

/// As the output layer makes them of the last hidden state.
std::vector<double> last_logits(const Tensor& hidden, const Tensor& weight) {
  const std::int64_t width = weight.extents.back(), from = hidden.size() - width;
  std::vector<double> logits;
  for (std::int64_t row = 0; row < weight.size(); row += width) {
    logits.push_back(0.0);
    for (std::int64_t i = 0; i < width; ++i) {
      logits.back() += hidden.at(from + i) * weight.at(row + i);
    }
  }
  return logits;
}

TEST(DrawLongCase, HasATokenFarAboveItsRowWhereAnOutputLayerMakesIt) {
  for (const auto& [loss, hidden, weight] :
       {std::tuple("linear_cross_entropy", "hidden", "weight"),
        std::tuple("linear_grpo", "hidden", "weight"),
        std::tuple("linear_jsd", "teacher_hidden", "teacher_weight")}) {
    const LossSignature& signature = *reference::find_signature(loss);
    int cases = 0;
    for (const Length& length : lengths_of(1, signature, kFloats)) {
      if (length.form != LongForm::far) continue;
      const Case c = draw_long_case(1, signature, length);
      EXPECT_EQ(fault_of(signature, c, length.dtype), "") << loss;
      std::vector<double> logits = last_logits(c.batch.at(hidden), c.batch.at(weight));
      const double last = logits.back();
      logits.pop_back();
      EXPECT_GT(last - std::ranges::max(logits), 90.0) << loss;
      ++cases;
    }
    EXPECT_GT(cases, 1) << loss << ": production's length, and those that fill blocks";
  }
}

}  // namespace
}  // namespace lossgate::fuzz
