// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/transforms.h"
#include "reference/given_case.h"
#include "reference/spec/elements.h"

namespace lossgate::properties {
namespace {

/// What the named way makes of the case.
std::optional<Transformed> spoilt(std::string_view way, const LossSignature& signature,
                                  const Case& c) {
  return std::ranges::find(kInvalid, way, &Transform::name)->apply(signature, c, c);
}

/// GRPO of which nothing but an extent can be wrong.
LossSignature only_extents() {
  LossSignature signature = grpo().signature;
  signature.mask.clear();
  signature.options.clear();
  signature.reductions.assign(std::begin(kAllReductions), std::end(kAllReductions));
  return signature;
}

TEST(Invalid, ShortensAConstantFieldByOneToken) {
  const LossSignature signature = only_extents();
  for (const std::int64_t tokens : {2, 3, 7}) {
    const Case c = grpo_case(3, tokens);
    const auto invalid = spoilt("invalid extent", signature, c);
    ASSERT_TRUE(invalid) << tokens;
    int shortened = 0;
    for (const Field& field : signature.fields) {
      const Tensor& tensor = invalid->c.batch.at(field.name);
      const bool whole = tensor == c.batch.at(field.name);
      shortened += !whole;
      if (whole) continue;
      EXPECT_NE(field.role, Role::differentiable) << field.name;
      EXPECT_EQ(tensor.extents, (Extents{3, tokens - 1}));
      EXPECT_EQ(tensor.size(), 3 * (tokens - 1));
    }
    EXPECT_EQ(shortened, 1);
    const auto refusal = reference::expected_refusal(grpo(), invalid->c);
    EXPECT_TRUE(refusal);
  }
}

TEST(Invalid, LeavesAFieldOfOneTokenAndAllThatDifferentiates) {
  LossSignature signature = only_extents();
  const Case one = grpo_case(3, 1), two = grpo_case(3, 2);
  EXPECT_FALSE(spoilt("invalid extent", signature, one));
  for (Field& field : signature.fields) field.role = Role::differentiable;
  EXPECT_FALSE(spoilt("invalid extent", signature, two));
}

TEST(Invalid, PutsATwoIntoEveryMaskThatHasAnEntry) {
  const LossSignature& signature = grpo().signature;
  EXPECT_FALSE(spoilt("invalid mask", signature, grpo_case(2, 0)));
  for (const std::int64_t tokens : {1, 3}) {
    const auto invalid = spoilt("invalid mask", signature, grpo_case(1, tokens));
    ASSERT_TRUE(invalid) << tokens;
    EXPECT_EQ(std::ranges::count(elements_of(invalid->c.batch.at(signature.mask)), 2.0), 1);
  }
}

TEST(NanAtValid, GoesToDataThatCounts) {
  const LossSignature& signature = *reference::find_signature("linear_grpo");
  reference::SmallCases cases(signature, 3);
  for (int i = 0; i < 40; ++i) {
    const Case c = cases.draw(Dtype::f32);
    const auto spoilt = kNanAtValid.apply(signature, c, c);
    if (!spoilt) continue;
    for (const Field& field : signature.fields) {
      const bool changed = !(spoilt->c.batch.at(field.name) == c.batch.at(field.name));
      EXPECT_TRUE(is_float(c.batch.at(field.name).dtype) || !changed) << field.name;
    }
  }
}

TEST(Invalid, PutsAFractionBetweenTheEndsOfAnOptionOfWholeNumbers) {
  std::mt19937_64 random(8);
  bool within = false;
  for (int i = 0; i < 400; ++i) {
    const Case c = random_grpo_case(random);
    const auto invalid = spoilt("invalid option", grpo().signature, c);
    ASSERT_TRUE(invalid);
    for (const Option& option : grpo().signature.options) {
      if (option.kind != Option::Kind::flag && option.kind != Option::Kind::integer) continue;
      const double value = invalid->c.spec.number(option.name);
      within |= option.low < value && value < option.high && value != std::round(value);
    }
  }
  EXPECT_TRUE(within);
}

/// What stands in place of labels that are all 0, where these are stored like that.
std::set<double> wrong_labels(Dtype stored) {
  const LossSignature& signature = *reference::find_signature("cross_entropy");
  Case c = ordinary_case("cross_entropy");
  Tensor& labels = c.batch.at(signature.ignore_label);
  labels = Tensor::zeros(stored, labels.extents);
  std::set<double> wrong;
  for (int i = 0; i < 100; ++i) {
    c.batch.at("logits").set(0, 0.01 * i);  // another choice
    const Case invalid = spoilt("invalid label", signature, c)->c;
    const Tensor& found = invalid.batch.at(signature.ignore_label);
    for (std::int64_t at = 0; at < found.size(); ++at) wrong.insert(found.at(at));
  }
  return wrong;
}

TEST(Invalid, PutsALabelOnEitherSideOfTheVocabularyOrOneThatOnlyWideNumbersTell) {
  EXPECT_EQ(wrong_labels(Dtype::i64), (std::set<double>{-1.0, 0.0, 5.0, 0x1p32}));
  EXPECT_EQ(wrong_labels(Dtype::i32), (std::set<double>{-1.0, 0.0, 5.0}));
}

TEST(Invalid, PutsATokenOutsideTheVocabularyIntoListsToo) {
  const LossSignature& signature = *reference::find_signature("sparse_jsd");
  std::set<std::string> spoiled;
  reference::SmallCases cases(signature, 5);
  for (int i = 0; i < 60; ++i) {
    const Case c = cases.draw(Dtype::f32);
    const auto invalid = spoilt("invalid label", signature, c);
    if (!invalid) continue;
    for (const Field& field : signature.fields) {
      if (!(invalid->c.batch.at(field.name) == c.batch.at(field.name))) spoiled.insert(field.name);
    }
  }
  EXPECT_EQ(spoiled, (std::set<std::string>{"label", "support_token"}));
}

/// GRPO with two more fields of whole numbers, about which nothing is promised where masked.
LossSignature with_whole_numbers() {
  LossSignature signature = grpo().signature;
  const std::vector<Axis> axes = {Axis::sequences, Axis::tokens};
  signature.fields.push_back({.name = "flag", .axes = axes, .dtypes = {Dtype::u8}});
  signature.fields.push_back(
      {.name = "token", .quantity = Quantity::label, .axes = axes, .dtypes = {Dtype::i32}});
  return signature;
}

TEST(MaskedNonFinite, PutsEitherFlagAndTokensBeyondAnyVocabularyWhereNumbersAreWhole) {
  Case c = grpo_case(2, 4);
  for (std::int64_t t = 0; t < 4; ++t) mask_out(c, 1, t);
  Tensor flags = Tensor::zeros(Dtype::u8, {2, 4}), tokens = Tensor::zeros(Dtype::i32, {2, 4});
  for (std::int64_t i = 0; i < 8; ++i) flags.set(i, 1.0), tokens.set(i, 3.0);
  c.batch.fields.emplace_back("flag", flags);
  c.batch.fields.emplace_back("token", tokens);
  const Batch moved = kMaskedNonFinite.apply(with_whole_numbers(), c, c)->c.batch;
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(moved.at("flag").at(i), 1.0) << "what counts stays";
    EXPECT_EQ(moved.at("token").at(i), 3.0);
    EXPECT_EQ(moved.at("flag").at(4 + i), i % 2 == 0 ? 0.0 : 1.0);
    EXPECT_EQ(moved.at("token").at(4 + i), i % 2 == 0 ? -1.0 : 120.0);
  }
  const Batch legal = kMaskedFinite.apply(with_whole_numbers(), c, c)->c.batch;
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(legal.at("flag").at(4 + i), 1.0) << "a number of any kind";
    EXPECT_EQ(legal.at("token").at(4 + i), 0.0) << "a token of every vocabulary";
  }
}

TEST(Padded, AppliesWhereTheSignatureAllowsIt) {
  LossSignature signature = grpo().signature;
  const Case c = grpo_case(2, 3);
  EXPECT_TRUE(kPadded.apply(signature, c, c));
  signature.longest = {{Axis::tokens, 6}};
  EXPECT_TRUE(kPadded.apply(signature, c, c));
  signature.longest = {{Axis::tokens, 5}};
  EXPECT_FALSE(kPadded.apply(signature, c, c)) << "longer than callers say";
  signature.longest.clear();
  signature.tokens_paddable = false;
  EXPECT_FALSE(kPadded.apply(signature, c, c));
}

TEST(Step, LeavesABatchWithoutPositionsAsItIs) {
  const LossSignature& signature = grpo().signature;
  for (const Case& c : {grpo_case(2, 0), grpo_case(0, 2)}) {
    const auto moved = kStepForward.apply(signature, c, c);
    ASSERT_TRUE(moved);
    for (const Field& field : signature.fields) {
      EXPECT_EQ(moved->c.batch.at(field.name), c.batch.at(field.name)) << field.name;
    }
  }
}

TEST(ZeroAdvantage, HasZerosOfEitherSign) {
  const Case c = grpo_case(2, 2);
  const Tensor advantage = kZeroAdvantage.apply(grpo().signature, c, c)->c.batch.at("advantage");
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(std::signbit(advantage.at(i)), i % 2 == 1) << i;
}

}  // namespace
}  // namespace lossgate::properties
