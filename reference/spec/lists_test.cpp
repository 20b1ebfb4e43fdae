// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/lists.h"

#include <gtest/gtest.h>

#include <vector>

namespace lossgate {
namespace {

/// Two tokens of a vocabulary of five, of which the first counts, and a list of three at each.
LossSignature signature() {
  LossSignature signature;
  signature.id = "listed";
  signature.mask = "mask";
  signature.fields = {{.name = "logits",
                       .quantity = Quantity::logit,
                       .axes = {Axis::sequences, Axis::tokens, Axis::vocab}},
                      {.name = "token",
                       .quantity = Quantity::label,
                       .axes = {Axis::sequences, Axis::tokens, Axis::support},
                       .dtypes = {Dtype::i64},
                       .distinct = true},
                      {.name = "mask",
                       .role = Role::mask,
                       .quantity = Quantity::mask,
                       .axes = {Axis::sequences, Axis::tokens},
                       .dtypes = {Dtype::boolean}}};
  return signature;
}

Case listing(const std::vector<int>& tokens) {
  const LossSignature of = signature();
  Case c;
  c.spec.loss = of.id;
  c.shape[Axis::sequences] = 1;
  c.shape[Axis::tokens] = 2;
  c.shape[Axis::vocab] = 5;
  c.shape[Axis::support] = 3;
  for (const Field& field : of.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  c.batch.at("mask").set(0, 1.0);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    c.batch.at("token").set(static_cast<std::int64_t>(i), tokens[i]);
  }
  return c;
}

TEST(Lists, AreOfTokensAndHaveAnAxisOfTheirOwn) {
  const LossSignature of = signature();
  EXPECT_FALSE(is_list(of.fields[0]));
  EXPECT_TRUE(is_list(of.fields[1]));
  EXPECT_FALSE(is_list(of.fields[2]));
}

TEST(Lists, NameEachTokenOnceWherePositionsCount) {
  LossSignature of = signature();
  EXPECT_TRUE(lists_are_distinct(of, listing({4, 0, 1, 0, 0, 0})));
  EXPECT_FALSE(lists_are_distinct(of, listing({4, 0, 4, 0, 1, 2})));
  of.fields[1].distinct = false;
  EXPECT_TRUE(lists_are_distinct(of, listing({4, 0, 4, 0, 1, 2})));
}

TEST(Lists, AreMadeDistinctByTheNextTokenThatIsNotInThem) {
  Case c = listing({4, 4, 0, 3, 3, 3});
  make_lists_distinct(signature(), c);
  EXPECT_EQ(c.batch.at("token"), listing({4, 0, 1, 3, 3, 3}).batch.at("token"));
  Case whole = listing({1, 2, 0, 3, 3, 3});
  make_lists_distinct(signature(), whole);
  EXPECT_EQ(whole.batch.at("token"), listing({1, 2, 0, 3, 3, 3}).batch.at("token"));
}

TEST(Lists, AreAsLongAsTheVocabularyAtMost) {
  LossSignature of = signature();
  Shape shape = listing({}).shape;
  EXPECT_TRUE(has_room_for_lists(of, shape));
  shape[Axis::support] = 6;
  EXPECT_FALSE(has_room_for_lists(of, shape));
  of.fields[1].distinct = false;
  EXPECT_TRUE(has_room_for_lists(of, shape));
}

}  // namespace
}  // namespace lossgate
