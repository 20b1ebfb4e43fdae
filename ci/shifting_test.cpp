// SPDX-License-Identifier: Apache-2.0
#include "ci/shifting.h"

#include <gtest/gtest.h>

#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::ci {
namespace {

const LossSignature& signature() { return *reference::find_signature("cross_entropy"); }

/// Two sequences of three tokens, three words; numbers and labels count on.
Case counting() {
  Case c = reference::zero_case(signature(), 2, 3, 3);
  Tensor &logits = c.batch.at("logits"), &label = c.batch.at("label");
  for (std::int64_t i = 0; i < logits.size(); ++i) logits.set(i, static_cast<double>(i));
  for (std::int64_t i = 0; i < label.size(); ++i) label.set(i, static_cast<double>(i % 3));
  return c;
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < tensor.size(); ++i) all.push_back(tensor.at(i));
  return all;
}

TEST(Shifting, PairsLogitsWithTheLabelBehindThem) {
  const Case c = paired_with_the_next(signature(), counting());
  EXPECT_EQ(c.shape[Axis::tokens], 2);
  EXPECT_EQ(c.batch.at("logits").extents, (Extents{2, 2, 3}));
  EXPECT_EQ(numbers(c.batch.at("logits")),
            (std::vector<double>{0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(numbers(c.batch.at("label")), (std::vector<double>{1, 2, 1, 2}));
  EXPECT_FALSE(reference::expected_refusal(*reference::find_loss("cross_entropy"), c));
}

TEST(Shifting, LeavesACaseOfNoTokenAsItIs) {
  const Case one = paired_with_the_next(signature(), reference::zero_case(signature(), 2, 1, 3));
  EXPECT_EQ(one.shape[Axis::tokens], 0);
  EXPECT_EQ(paired_with_the_next(signature(), one).batch, one.batch);
}

TEST(Shifting, TakesNumbersOfTokensAsLabelsAndValuesAsLogits) {
  const LossSignature& layer = *reference::find_signature("linear_grpo");
  for (const char* name : {"label", "old_log_prob", "advantage"}) {
    EXPECT_TRUE(is_of_token(*layer.find_field(name))) << name;
  }
  EXPECT_FALSE(is_of_token(*layer.find_field("hidden")));
  EXPECT_FALSE(is_of_token(*reference::find_signature("value_clip")->find_field("value")));
  EXPECT_TRUE(is_of_token(*reference::find_signature("value_clip")->find_field("mask")));
}

TEST(Shifting, IsDeclaredOfAnyArgument) {
  impl::Subject subject;
  subject.arguments = {{"logits", "field:logits"}};
  EXPECT_FALSE(shifts(subject));
  subject.arguments.emplace_back("labels", "field:label as shifted as int64");
  EXPECT_TRUE(shifts(subject));
}

}  // namespace
}  // namespace lossgate::ci
