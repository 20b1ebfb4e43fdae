// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/policy_math.h"

#include <gtest/gtest.h>

#include <limits>

#include "impl/cuda/kl_math.h"
#include "impl/pairwise_sum.h"

namespace lossgate::impl {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();
const ClipRange<float> kClip{.low = 0.8f, .high = 1.2f, .dual = {}};

ImportanceWeight<float> weight_of(float log_ratio) {
  return importance_weight(log_ratio, Limit<float>{});
}

TEST(ImportanceWeight, HandsTheGradientOnOverTheClosedInterval) {
  const Limit<float> limit{true, 2.0f};
  EXPECT_EQ(importance_weight(2.0f, limit).slope, importance_weight(2.0f, limit).value);
  EXPECT_EQ(importance_weight(2.1f, limit).slope, 0.0f);
  EXPECT_EQ(importance_weight(2.1f, limit).value, std::exp(2.0f));
  EXPECT_EQ(importance_weight(-kInfinity, limit).value, std::exp(-2.0f));
  EXPECT_TRUE(std::isnan(importance_weight(kNan, limit).value));
  EXPECT_TRUE(std::isnan(importance_weight(kNan, limit).slope));
}

TEST(ClippedSurrogate, StopsTheGradientOutsideTheClipRange) {
  EXPECT_EQ(clipped_surrogate(1.0f, 2.0f, kClip).value, -2.0f);
  EXPECT_EQ(clipped_surrogate(1.2f, 2.0f, kClip).slope, -2.0f);
  EXPECT_EQ(clipped_surrogate(1.3f, 2.0f, kClip).slope, 0.0f);
  EXPECT_EQ(clipped_surrogate(kInfinity, 2.0f, kClip).value, -2.4f);
  EXPECT_EQ(clipped_surrogate(0.5f, -2.0f, kClip).value, 1.6f);
  EXPECT_EQ(clipped_surrogate(0.5f, -2.0f, kClip).slope, 0.0f);
  EXPECT_EQ(clipped_surrogate(3.0f, -2.0f, kClip).value, 6.0f);
}

TEST(ClippedSurrogate, BoundsTheWeightOfNegativeAdvantagesAtTheDualClip) {
  ClipRange<float> clip = kClip;
  clip.dual = {true, 3.0f};
  EXPECT_EQ(clipped_surrogate(kInfinity, -2.0f, clip).value, 6.0f);
  EXPECT_EQ(clipped_surrogate(kInfinity, -2.0f, clip).slope, 0.0f);
  EXPECT_EQ(clipped_surrogate(4.0f, 2.0f, clip).value, -2.4f);
}

TEST(ClippedSurrogate, IsZeroForAdvantageZeroAndNanForNan) {
  EXPECT_EQ(clipped_surrogate(kInfinity, 0.0f, kClip).value, 0.0f);
  EXPECT_EQ(clipped_surrogate(kInfinity, -0.0f, kClip).slope, 0.0f);
  EXPECT_TRUE(std::isnan(clipped_surrogate(1.0f, kNan, kClip).value));
  EXPECT_TRUE(std::isnan(clipped_surrogate(kNan, 1.0f, kClip).value));
}

TEST(PlainKl, KeepsItsDigitsNearZero) {
  EXPECT_NEAR(plain_kl(KlKind::k3, 1e-3f).value, 5.001667e-7f, 1e-10f);
  EXPECT_FLOAT_EQ(plain_kl(KlKind::k3, 1e-3f).slope, -1.0005002e-3f);
  EXPECT_EQ(plain_kl(KlKind::k1, 3.0f).value, -3.0f);
  EXPECT_EQ(plain_kl(KlKind::k2, 3.0f).value, 4.5f);
  EXPECT_EQ(plain_kl(KlKind::k2, 3.0f).slope, -3.0f);
  EXPECT_EQ(plain_kl(KlKind::k3, kInfinity).value, kInfinity);
  EXPECT_EQ(plain_kl(KlKind::k3, -kInfinity).value, kInfinity);
}

TEST(KlTerm, BoundsTheEstimateAndStopsItsGradient) {
  const KlOptions<float> options{.output = {true, 10.0f}};
  const auto kl = kl_term(0.0f, 100.0f, weight_of(0.0f), options);
  EXPECT_EQ(kl.value, 10.0f);
  EXPECT_EQ(kl.slope, 0.0f);
  EXPECT_EQ(kl_term(0.0f, 1.0f, weight_of(0.0f), options).slope, -std::expm1(1.0f));
  const KlOptions<float> input{.input = {true, 2.0f}};
  EXPECT_EQ(kl_term(0.0f, 3.0f, weight_of(0.0f), input).value, std::expm1(2.0f) - 2.0f);
  EXPECT_EQ(kl_term(0.0f, 3.0f, weight_of(0.0f), input).slope, 0.0f);
}

TEST(KlTerm, KnowsAProductOfAVanishingWeightAndAnOverflowingEstimate) {
  KlOptions<float> options{.weighted = true};
  EXPECT_NEAR(kl_term(0.0f, 120.0f, weight_of(-118.0f), options).value, std::exp(2.0f), 1e-3f);
  EXPECT_NEAR(kl_term(0.0f, 120.0f, weight_of(-118.0f), options).slope, -std::exp(2.0f), 1e-3f);
  options.output = {true, 10.0f};
  EXPECT_EQ(kl_term(0.0f, 300.0f, weight_of(-200.0f), options).value, 10.0f);
  EXPECT_EQ(kl_term(0.0f, 300.0f, weight_of(-200.0f), options).log_weight_slope, 0.0f);
}

TEST(KlTerm, KeepsTheDigitsOfAVanishingWeightTimesAnOverflowingSquare) {
  const KlOptions<float> options{.kind = KlKind::k2, .weighted = true};
  for (float log_ratio : {-70.0f, -80.0f, -100.0f, -170.0f}) {
    const float x = 0x1p83f * std::exp(-0.4f * (log_ratio + 80.0f));
    const double square = 0.5 * static_cast<double>(x) * static_cast<double>(x);
    const double expected = std::exp(static_cast<double>(log_ratio)) * square;
    EXPECT_FLOAT_EQ(kl_term(0.0f, x, weight_of(log_ratio), options).value,
                    static_cast<float>(expected))
        << log_ratio;
  }
}

TEST(KlTerm, HandsNanOnWhateverTheWeight) {
  const KlOptions<float> options{.weighted = true};
  EXPECT_TRUE(std::isnan(kl_term(0.0f, kNan, weight_of(-200.0f), options).value));
  EXPECT_TRUE(std::isnan(kl_term(0.0f, kNan, weight_of(0.0f), options).value));
}

TEST(KlTerm, KnowsAProductOfAnOverflowingWeightAndASmallEstimate) {
  KlOptions<float> options{.kind = KlKind::k1, .weighted = true};
  options.output = {true, 1000.0f};
  const auto kl = kl_term(0.0f, 1e-38f, weight_of(90.0f), options);
  EXPECT_NEAR(kl.value, -12.204033f, 1e-4f);
  EXPECT_EQ(kl.log_weight_slope, kl.value);
  EXPECT_EQ(kl.weight_slope, 0.0f);
  EXPECT_EQ(kl_term(0.0f, 0.0f, weight_of(90.0f), options).value, 0.0f);
}

TEST(KlTerm, IsZeroWhereTheTokenHasBecomeImpossible) {
  const KlOptions<float> options{.weighted = true};
  EXPECT_EQ(kl_term(-kInfinity, -1.0f, weight_of(-kInfinity), options).value, 0.0f);
  EXPECT_TRUE(std::isnan(kl_term(-kInfinity, kNan, weight_of(-kInfinity), options).value));
}

TEST(PairwiseSum, AddsHalvesFirst) {
  const float terms[] = {1.0f, 0x1p-24f, 0x1p-24f, 0x1p-24f};
  EXPECT_EQ(pairwise_sum(terms, 4), 1.0f + 0x1p-23f);  // one after the other would give 1
  const float odd[] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f, 32.0f, 64.0f};
  EXPECT_EQ(pairwise_sum(odd, 7), 127.0f);
  EXPECT_EQ(pairwise_sum(odd, 0), 0.0f);
}

TEST(OverflowFreeSum, SurvivesPartialSumsThatOverflow) {
  const float most = std::numeric_limits<float>::max();
  const float terms[] = {most, most, -most, -most, 1.0f};
  EXPECT_EQ(overflow_free_sum(terms, 4), 0.0f);
  const float more[] = {-most, -most, most, most, most};
  EXPECT_FLOAT_EQ(overflow_free_sum(more, 5), most);
  const float beyond[] = {-most, -most, most, most, most, most};
  EXPECT_EQ(overflow_free_sum(beyond, 6), kInfinity);
  const float infinite[] = {kInfinity, -most, -most};
  EXPECT_EQ(overflow_free_sum(infinite, 3), kInfinity);
}

}  // namespace
}  // namespace lossgate::impl
