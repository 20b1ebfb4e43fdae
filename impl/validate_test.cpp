// SPDX-License-Identifier: Apache-2.0
#include "impl/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "impl/given_toy_loss.h"

namespace lossgate::impl {
namespace {

const LossSignature kToy = toy_signature();

/// The refusal of a 2 x 3 case after the change.
std::optional<Refusal> refusal_after(const std::function<void(Case&)>& change) {
  Case c = toy_case(kToy, 2, 3);
  change(c);
  try {
    require_valid(kToy, c);
  } catch (const Refusal& refusal) {
    return refusal;
  }
  return std::nullopt;
}

std::string argument_after(const std::function<void(Case&)>& change) {
  const auto refusal = refusal_after(change);
  return refusal ? refusal->argument : "";
}

TEST(Validate, AcceptsAValidCase) {
  EXPECT_FALSE(refusal_after([](Case&) {}));
  EXPECT_FALSE(refusal_after([](Case& c) { c.spec.set("limit", 2.0); }));
}

TEST(Validate, RefusesAReductionThatTheLossDoesNotHave) {
  EXPECT_EQ(argument_after([](Case& c) { c.spec.reduction = Reduction::none; }), "reduction");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.reduction = Reduction::sequence_mean; }),
            "reduction");
}

TEST(Validate, RefusesOptionsThatAreUnknownMissingOrOutOfRange) {
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("scal", 1.0); }), "scal");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.options.erase(c.spec.options.begin()); }), "scale");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("scale", 4.5); }), "scale");
  EXPECT_EQ(argument_after(
                [](Case& c) { c.spec.set("scale", std::numeric_limits<double>::quiet_NaN()); }),
            "scale");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("scale", None{}); }), "scale");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("length", 2.5); }), "length");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("kind", "c"); }), "kind");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("kind", 1.0); }), "kind");
  EXPECT_EQ(argument_after([](Case& c) { c.spec.set("scale", "a"); }), "scale");
}

TEST(Validate, RefusesFieldsThatAreMissingUnknownOrOfTheWrongDtype) {
  EXPECT_EQ(argument_after([](Case& c) { c.batch.fields.pop_back(); }), "mask");
  EXPECT_EQ(argument_after([](Case& c) { c.batch.fields.emplace_back("y", Tensor{}); }), "y");
  EXPECT_EQ(argument_after([](Case& c) {
              c.batch.at("x") = Tensor::zeros(Dtype::i64, {2, 3});
            }),
            "x");
  EXPECT_EQ(argument_after([](Case& c) { c.batch.at("weight") = Tensor::zeros(Dtype::f64, {1}); }),
            "weight");
  EXPECT_EQ(argument_after([](Case& c) { c.batch.at("weight") = Tensor::zeros(Dtype::f16, {1}); }),
            "x")
      << "which is wider";
}

TEST(Validate, RefusesShapesThatDifferFromTheCase) {
  EXPECT_EQ(argument_after([](Case& c) {
              c.batch.at("x") = Tensor::zeros(Dtype::f32, {3, 2});
            }),
            "x");
  EXPECT_EQ(argument_after([](Case& c) {
              c.batch.at("x") = Tensor::zeros(Dtype::f32, {2, 1});
            }),
            "x");
  EXPECT_EQ(argument_after([](Case& c) { c.batch.at("mask").bytes.pop_back(); }), "mask");
  EXPECT_EQ(argument_after([](Case& c) { c.shape[Axis::hidden] = -1; }), "weight");
}

TEST(Validate, RefusesExtentsWhoseProductOverflows) {
  EXPECT_EQ(argument_after([](Case& c) {
              const std::int64_t huge = std::int64_t{1} << 62;
              c.shape[Axis::sequences] = c.shape[Axis::tokens] = huge;
              for (auto& [name, tensor] : c.batch.fields) tensor.extents = {huge, huge};
              c.batch.at("x").bytes.clear();
            }),
            "x");
}

TEST(Validate, NamesThePlaceOfAMaskThatIsNeitherZeroNorOne) {
  const auto refusal = refusal_after([](Case& c) { c.batch.at("mask").set(4, 2.0); });
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->argument, "mask");
  EXPECT_EQ(refusal->sequence, 1);
  EXPECT_EQ(refusal->token, 1);
}

TEST(Validate, RefusesALabelOutsideTheVocabularyOnlyWhereItCounts) {
  const auto refusal = refusal_after([](Case& c) { c.batch.at("label").set(5, 5.0); });
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->argument, "label");
  EXPECT_EQ(refusal->sequence, 1);
  EXPECT_EQ(refusal->token, 2);
  EXPECT_EQ(argument_after([](Case& c) { c.batch.at("label").set(0, -1.0); }), "label");
  EXPECT_FALSE(refusal_after([](Case& c) { c.batch.at("label").set(0, -100.0); }));
  EXPECT_FALSE(refusal_after([](Case& c) {
    c.batch.at("label").set(0, 77.0);
    c.batch.at("mask").set(0, 0.0);
  }));
}

TEST(Validate, RefusesAnInfinityWhereTheFieldDoesButLetsNanThrough) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(argument_after([&](Case& c) { c.batch.at("x").set(1, -infinity); }), "x");
  EXPECT_EQ(argument_after([&](Case& c) { c.batch.at("weight").set(0, infinity); }), "");
  EXPECT_FALSE(refusal_after([&](Case& c) {
    c.batch.at("x").set(1, infinity);
    c.batch.at("mask").set(1, 0.0);
  }));
  EXPECT_FALSE(refusal_after(
      [](Case& c) { c.batch.at("x").set(1, std::numeric_limits<double>::quiet_NaN()); }));
}

TEST(Validate, RefusesASplitThatDoesNotDealEverySequenceOnce) {
  EXPECT_FALSE(refusal_after([](Case& c) { c.split = {2, {{1, {1}}, {0, {}}, {1, {0}}}}; }));
  EXPECT_EQ(argument_after([](Case& c) { c.split = {1, {{0, {0}}}}; }), "split");
  EXPECT_EQ(argument_after([](Case& c) { c.split = {1, {{0, {0, 1, 1}}}}; }), "split");
  EXPECT_EQ(argument_after([](Case& c) { c.split = {1, {{0, {0, 2}}}}; }), "split");
  EXPECT_EQ(argument_after([](Case& c) { c.split = {1, {{1, {0, 1}}}}; }), "split");
}

TEST(Validate, AcceptsACaseWithoutSequencesOrTokens) {
  EXPECT_NO_THROW(require_valid(kToy, toy_case(kToy, 0, 3)));
  EXPECT_NO_THROW(require_valid(kToy, toy_case(kToy, 2, 0)));
}

}  // namespace
}  // namespace lossgate::impl
