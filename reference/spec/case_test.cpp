// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/case.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace lossgate {
namespace {

const std::vector<Axis> kPerToken = {Axis::sequences, Axis::tokens};

LossSignature masked_signature() {
  LossSignature signature;
  signature.id = "masked";
  signature.options = {{.name = "clip", .standard = 0.2}, {.name = "dual", .standard = None{}}};
  signature.fields = {{.name = "label", .axes = kPerToken, .dtypes = {Dtype::i64}},
                      {.name = "mask", .axes = kPerToken, .dtypes = {Dtype::u8}},
                      {.name = "x", .axes = kPerToken}};
  signature.reductions = {Reduction::token_mean, Reduction::sum};
  return signature;
}

/// Labels 5, -100, 7, -100 and mask 1, 1, 0, 0.
Case masked_case() {
  Case c;
  c.spec = standard_spec(masked_signature());
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 2;
  for (const Field& field : masked_signature().fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::bf16 : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  for (std::int64_t i = 0; i < 4; ++i) {
    c.batch.at("label").set(i, i % 2 ? kIgnoreLabel : 5.0 + static_cast<double>(i));
    c.batch.at("mask").set(i, i < 2 ? 1.0 : 0.0);
  }
  return c;
}

TEST(LossSpec, StandardSpellsOutEveryOption) {
  const LossSpec spec = standard_spec(masked_signature());
  EXPECT_EQ(spec.loss, "masked");
  EXPECT_EQ(spec.reduction, Reduction::token_mean);
  EXPECT_EQ(spec.number("clip"), 0.2);
  EXPECT_TRUE(spec.is_none("dual"));
  EXPECT_EQ(standard_spec(LossSignature()).reduction, Reduction::none);
}

TEST(LossSpec, AnOptionFollowsAnother) {
  LossSignature signature = masked_signature();
  signature.options.insert(signature.options.begin(), {.name = "above", .standard = 0.2});
  LossSpec spec = standard_spec(signature);
  spec.set("clip", 0.3);
  follow(signature, spec);
  EXPECT_EQ(spec.number("above"), 0.2) << "it does not";
  signature.options.front().follows = "clip";
  follow(signature, spec);
  EXPECT_EQ(spec.number("above"), 0.3);
  EXPECT_EQ(spec.number("clip"), 0.3);
  EXPECT_TRUE(spec.is_none("dual"));
}

TEST(LossSpec, SetReplacesInPlaceOrAppends) {
  LossSpec spec = standard_spec(masked_signature());
  spec.set("clip", None{});
  spec.set("level", "token");
  ASSERT_EQ(spec.options.size(), 3u);
  EXPECT_EQ(spec.options[0].first, "clip");
  EXPECT_TRUE(spec.is_none("clip"));
  EXPECT_EQ(spec.choice("level"), "token");
}

TEST(LossSpec, RefusesToReadAnOptionAsWhatItIsNot) {
  const LossSpec spec = standard_spec(masked_signature());
  EXPECT_THROW(spec.number("dual"), std::out_of_range);
  EXPECT_THROW(spec.choice("clip"), std::out_of_range);
  EXPECT_THROW(spec.number("missing"), std::out_of_range);
  EXPECT_THROW(spec.choice("missing"), std::out_of_range);
  EXPECT_EQ(spec.find("missing"), nullptr);
  EXPECT_TRUE(spec.is_none("missing"));
}

TEST(Shape, GivesExtentsInTheOrderOfTheAxes) {
  Shape shape;
  EXPECT_EQ(shape[Axis::vocab], -1);
  shape[Axis::vocab] = 7;
  shape[Axis::tokens] = 0;
  EXPECT_EQ(shape.of({Axis::vocab, Axis::tokens, Axis::vocab}), (Extents{7, 0, 7}));
  EXPECT_EQ(shape.of({}), Extents());
}

TEST(Batch, FindsFieldsOrSaysWhichIsMissing) {
  Case c = masked_case();
  EXPECT_EQ(c.batch.find("mask"), &c.batch.fields[1].second);
  EXPECT_EQ(c.batch.find("weight"), nullptr);
  try {
    c.batch.at("weight");
    ADD_FAILURE();
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "field 'weight' is missing");
  }
}

TEST(Split, GivesAPartToTheFirstRankUnlessItSays) { EXPECT_EQ(Split::Part{}.rank, 0); }

TEST(Split, IsWholeWithoutParts) {
  EXPECT_TRUE(Split().whole());
  EXPECT_FALSE((Split{.world = 1, .parts = {{.rank = 0, .sequences = {}}}}.whole()));
}

TEST(Layout, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (Layout layout : kAllLayouts) names.insert(name(layout));
  EXPECT_EQ(names.size(), std::size(kAllLayouts));
}

TEST(Layout, IsOneForAllFieldsUnlessItIsMixed) {
  Case c;
  for (Layout layout : kAllLayouts) {
    c.layout = layout;
    if (layout == Layout::mixed) continue;
    for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(layout_of(c, i), layout);
  }
}

TEST(Layout, LaysNoTwoNeighboursAlikeWhereItIsMixed) {
  Case c;
  c.layout = Layout::mixed;
  for (std::int64_t tokens : {1, 2, 3, 4, 5, 6}) {
    c.shape[Axis::tokens] = tokens;
    for (std::int64_t i = 0; i < 9; ++i) EXPECT_NE(layout_of(c, i), layout_of(c, i + 1));
  }
}

TEST(Layout, LaysAnyTwoArraysOtherwiseInSomeMixedCase) {
  for (std::int64_t one = 0; one < 9; ++one) {
    for (std::int64_t other = 0; other < one; ++other) {
      const auto differs = [&](std::int64_t tokens) {
        Case c;
        c.layout = Layout::mixed;
        c.shape[Axis::tokens] = tokens;
        return layout_of(c, one) != layout_of(c, other);
      };
      EXPECT_TRUE(differs(4) || differs(5)) << one << " and " << other;
    }
  }
}

TEST(Layout, IsFoundByTheNameOfAField) {
  Case c;
  c.layout = Layout::mixed;
  c.shape[Axis::tokens] = 3;
  c.batch.fields = {{"one", {}}, {"other", {}}};
  EXPECT_EQ(layout_of(c, "one"), Layout::contiguous);
  EXPECT_EQ(layout_of(c, "other"), Layout::padded_rows);
}

TEST(ValidPositions, AreThoseThatMaskAndLabelBothAllow) {
  LossSignature signature = masked_signature();
  const Case c = masked_case();
  EXPECT_EQ(valid_positions(signature, c), std::vector<bool>(4, true));
  signature.mask = "mask";
  EXPECT_EQ(valid_positions(signature, c), (std::vector<bool>{true, true, false, false}));
  signature.ignore_label = "label";
  EXPECT_EQ(valid_positions(signature, c), (std::vector<bool>{true, false, false, false}));
  signature.mask = "";
  EXPECT_EQ(valid_positions(signature, c), (std::vector<bool>{true, false, true, false}));
}

TEST(ValidPositions, CountAnyMaskValueThatIsNotZero) {
  LossSignature signature = masked_signature();
  signature.mask = "mask";
  Case c = masked_case();
  c.batch.at("mask").set(3, 255.0);
  EXPECT_TRUE(valid_positions(signature, c)[3]);
}

TEST(ValidPositions, AreThoseOfAMaskOfAnyDtype) {
  LossSignature signature = masked_signature();
  signature.mask = "mask";
  for (const Dtype dtype : kAllDtypes) {
    Case c = masked_case();
    c.batch.at("mask") = Tensor::zeros(dtype, {2, 2});
    for (const std::int64_t i : {0, 3}) c.batch.at("mask").set(i, 1.0);
    EXPECT_EQ(valid_positions(signature, c), (std::vector<bool>{true, false, false, true}))
        << name(dtype);
  }
}

TEST(ValidPositions, AreNoneWhereThereAreNoPositions) {
  Case c = masked_case();
  c.shape = Shape();
  c.shape[Axis::vocab] = 3;
  c.shape[Axis::sequences] = 0;
  EXPECT_TRUE(valid_positions(masked_signature(), c).empty());
}

TEST(FloatDtype, IsThatOfTheFieldsThatMayHaveAny) {
  Case c = masked_case();
  EXPECT_EQ(float_dtype(masked_signature(), c), Dtype::bf16);
  c.batch.fields.pop_back();
  EXPECT_EQ(float_dtype(masked_signature(), c), Dtype::f32);
}

TEST(FloatDtype, IsOf16BitsWhereOtherFieldsStayInF32) {
  LossSignature signature = masked_signature();
  signature.fields.insert(signature.fields.begin(), {.name = "y", .axes = kPerToken, .wide = true});
  Case c = masked_case();
  c.batch.fields.emplace_back("y", Tensor::zeros(Dtype::f32, {2, 2}));
  EXPECT_EQ(float_dtype(signature, c), Dtype::bf16);
  signature.fields.front().wide = false;  // as who has not heard of it reads the case
  EXPECT_EQ(float_dtype(signature, c), Dtype::bf16);
}

TEST(DtypeBeside, IsF32OfAWideFieldWhereOthersHave16Bits) {
  const Field plain{.name = "x", .axes = {}}, wide{.name = "x", .axes = {}, .wide = true};
  for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
    EXPECT_EQ(dtype_beside(plain, dtype), dtype);
    EXPECT_EQ(dtype_beside(wide, dtype), dtype);
  }
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    EXPECT_EQ(dtype_beside(plain, dtype), dtype);
    EXPECT_EQ(dtype_beside(wide, dtype), Dtype::f32);
  }
}

TEST(IsPositional, AsksForSequencesAndTokensInThatOrder) {
  const auto positional = [](std::vector<Axis> axes) {
    return is_positional({.name = "x", .axes = std::move(axes)});
  };
  EXPECT_TRUE(positional({Axis::sequences, Axis::tokens}));
  EXPECT_TRUE(positional({Axis::sequences, Axis::tokens, Axis::vocab}));
  EXPECT_FALSE(positional({Axis::tokens, Axis::sequences}));
  EXPECT_FALSE(positional({Axis::vocab, Axis::tokens}));
  EXPECT_FALSE(positional({Axis::sequences}));
  EXPECT_FALSE(positional({}));
}

}  // namespace
}  // namespace lossgate
