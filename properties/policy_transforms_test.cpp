// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/fake_grpo.h"
#include "properties/transforms.h"
#include "reference/given_case.h"
#include "reference/reference.h"

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

TEST(OnPolicy, LeavesAFieldThatCallersHaveNoneOfAsItIs) {
  LossSignature signature = grpo().signature;
  std::ranges::find(signature.fields, "old_log_prob", &Field::name)->absent = true;
  Case c = grpo_case(3, 4);
  Tensor& old = c.batch.at("old_log_prob");
  old = Tensor::zeros(old.dtype, old.extents);
  const auto made = kOnPolicy.apply(signature, c, c);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->c.batch.at("old_log_prob") == old);
  EXPECT_TRUE(made->c.batch.at("ref_log_prob") == c.batch.at("log_prob"));
}

TEST(RuleC9, OnePolicyInTheOthersPlaceLeavesWhatCallersHaveBehindTheMask) {
  LossSignature signature = *reference::find_signature("grpo");
  reference::SmallCases cases(signature, 2);
  int masked = 0, moved = 0;
  for (int i = 0; i < 50; ++i) {
    const bool zero = i % 2 == 0;
    for (Field& field : signature.fields) {
      if (field.name == "old_log_prob") field.masked = zero ? Masked::zero : Masked::finite;
    }
    Case c = cases.draw(Dtype::f32);
    const std::vector<bool> valid = valid_positions(signature, c);
    for (std::int64_t at = 0; at < std::ssize(valid); ++at) {
      if (valid[static_cast<std::size_t>(at)]) continue;
      c.batch.at("log_prob").set(at, -1e9);
      c.batch.at("old_log_prob").set(at, 0.0);
    }
    const auto same = kOnPolicy.apply(signature, c, c);
    ASSERT_TRUE(same);
    const Tensor &now = same->c.batch.at("log_prob"), &old = same->c.batch.at("old_log_prob");
    for (std::int64_t at = 0; at < std::ssize(valid); ++at) {
      const bool counts = valid[static_cast<std::size_t>(at)];
      EXPECT_EQ(old.at(at), counts || !zero ? now.at(at) : 0.0);
      masked += !counts;
      moved += counts && c.batch.at("old_log_prob").at(at) != old.at(at);
    }
  }
  EXPECT_GT(masked, 20);
  EXPECT_GT(moved, 20);
}

TEST(RuleC9, SequencesStayInTheirGroupsWhereThoseAreKnownByTheirPlace) {
  LossSignature signature = *reference::find_signature("group_advantage");
  for (Field& field : signature.fields) field.even_groups = field.role == Role::group;
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 6;
  for (const Field& field : signature.fields) {
    Tensor tensor = Tensor::zeros(field.dtypes.empty() ? Dtype::f32 : field.dtypes.front(),
                                  c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, static_cast<double>(field.role == Role::group ? i / 3 : i));
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  const auto permuted = kRowsPermuted.apply(signature, c, c);
  ASSERT_TRUE(permuted);
  EXPECT_EQ(permuted->row_of, (std::vector<std::int64_t>{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(permuted->c.batch.at("group"), c.batch.at("group"));
  EXPECT_EQ(permuted->c.batch.at("reward").at(0), 2.0);
}

}  // namespace
}  // namespace lossgate::properties
