// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "properties/fake_grpo.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

std::optional<Transformed> apply(const Transform& transform, const Case& c) {
  return transform.apply(grpo().signature, c, c);
}

/// A case whose fields have these dtypes, and sevenths for log-probs.
Case case_of_sevenths(Dtype log_prob, Dtype others) {
  Case c = grpo_case(2, 3);
  for (const char* name : {"log_prob", "old_log_prob", "ref_log_prob", "advantage"}) {
    Tensor& tensor = c.batch.at(name);
    tensor = Tensor::zeros(name == std::string("log_prob") ? log_prob : others, tensor.extents);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, -static_cast<double>(i) / 7.0);
  }
  return c;
}

TEST(ZeroAdvantage, SilencesEveryOtherTermAsWell) {
  const Case c = apply(kZeroAdvantage, grpo_case(2, 2))->c;
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(c.batch.at("advantage").at(i), 0.0);
  EXPECT_EQ(c.spec.number("kl_penalty"), 0.0);
}

TEST(OnPolicy, MakesEveryPairEqualBitForBit) {
  const Case c = apply(kOnPolicy, grpo_case(3, 4))->c;
  EXPECT_TRUE(c.batch.at("old_log_prob") == c.batch.at("log_prob"));
  EXPECT_TRUE(c.batch.at("ref_log_prob") == c.batch.at("log_prob"));
}

TEST(OnPolicy, MakesPairsEqualWhereTheOtherFieldHasAllDigits) {
  const auto made = apply(kOnPolicy, case_of_sevenths(Dtype::bf16, Dtype::f32));
  ASSERT_TRUE(made);
  for (const char* name : {"old_log_prob", "ref_log_prob"}) {
    const Tensor& tensor = made->c.batch.at(name);
    EXPECT_EQ(tensor.dtype, Dtype::f32);
    EXPECT_EQ(tensor.bytes.size(), 6 * size_of(Dtype::f32));
    EXPECT_EQ(tensor.at(3), made->c.batch.at("log_prob").at(3));
  }
  EXPECT_FALSE(apply(kOnPolicy, case_of_sevenths(Dtype::f32, Dtype::bf16)));
  Case masked = case_of_sevenths(Dtype::bf16, Dtype::f32);
  masked.batch.at("log_prob").set(5, std::nan(""));
  EXPECT_TRUE(apply(kOnPolicy, masked)) << "what is behind the mask is no number";
}

}  // namespace
}  // namespace lossgate::properties
