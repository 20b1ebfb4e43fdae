// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace lossgate {
namespace {

LossSignature signature_of(Masked masked) {
  LossSignature signature;
  signature.id = signature.title = signature.formula = signature.source = "toy";
  signature.fields = {{.name = "x",
                       .role = Role::differentiable,
                       .axes = {Axis::sequences, Axis::tokens},
                       .masked = masked},
                      {.name = "mask",
                       .role = Role::mask,
                       .quantity = Quantity::mask,
                       .axes = {Axis::sequences, Axis::tokens},
                       .dtypes = {Dtype::u8}},
                      {.name = "group",
                       .role = Role::group,
                       .quantity = Quantity::group,
                       .axes = {Axis::sequences},
                       .dtypes = {Dtype::i64}}};
  signature.reductions = {Reduction::token_mean};
  signature.mask = "mask";
  return signature;
}

/// Two sequences of three tokens of x = 1 .. 6, of which the last is masked.
Case stored_case(double masked = 0.0) {
  Case c;
  c.spec = standard_spec(signature_of(Masked::anything));
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 3;
  c.shape[Axis::vocab] = 5;
  Tensor x = Tensor::zeros(Dtype::f64, {2, 3}), mask = Tensor::zeros(Dtype::u8, {2, 3});
  for (std::int64_t i = 0; i < 6; ++i) {
    x.set(i, i < 5 ? static_cast<double>(i + 1) : masked);
    mask.set(i, i < 5 ? 1.0 : 0.0);
  }
  c.batch.fields = {{"x", x}, {"mask", mask}, {"group", Tensor::zeros(Dtype::i64, {2})}};
  return c;
}

TEST(KeepsToContract, LooksAtWhatIsMasked) {
  const std::pair<Masked, double> growing[] = {
      {Masked::zero, 0.0},
      {Masked::ordinary, 1e4},
      {Masked::finite, std::numeric_limits<float>::max()},
      {Masked::anything, std::numeric_limits<double>::quiet_NaN()}};
  for (std::size_t i = 0; i < std::size(growing); ++i) {
    for (std::size_t k = 0; k < std::size(growing); ++k) {
      const Case c = stored_case(growing[k].second);
      EXPECT_EQ(keeps_to_contract(signature_of(growing[i].first), c), k <= i) << i << " " << k;
    }
  }
}

TEST(KeepsToContract, LeavesOutRowsThatAMeanWouldCount) {
  LossSignature signature = signature_of(Masked::zero);
  signature.empty_rows = EmptyRows::counted;
  Case c = stored_case();
  c.spec.reduction = Reduction::sequence_mean;
  EXPECT_TRUE(keeps_to_contract(signature, c));
  for (const std::int64_t at : {3, 4}) {
    c.batch.at("mask").set(at, 0.0);
    c.batch.at("x").set(at, 0.0);
  }
  EXPECT_FALSE(keeps_to_contract(signature, c));
  c.spec.reduction = Reduction::token_mean;
  EXPECT_TRUE(keeps_to_contract(signature, c));
  c.spec.reduction = Reduction::seq_mean_token_sum_norm;
  for (const std::int64_t at : {0, 1, 2}) {
    c.batch.at("mask").set(at, 0.0);
    c.batch.at("x").set(at, 0.0);
  }
  EXPECT_TRUE(keeps_to_contract(signature, c));  // 0, whatever is counted
}

TEST(KeepsToContract, WantsZerosWhereTheCallerHasNoneOfAField) {
  LossSignature signature = signature_of(Masked::zero);
  signature.fields[0].absent = true;
  Case c = stored_case();
  EXPECT_FALSE(keeps_to_contract(signature, c));
  for (std::int64_t i = 0; i < 6; ++i) c.batch.at("x").set(i, 0.0);
  EXPECT_TRUE(keeps_to_contract(signature, c));
}

TEST(KeepsToContract, LooksAtTheDtypeOfAFieldThatHasItsOwn) {
  LossSignature signature = signature_of(Masked::zero);
  EXPECT_TRUE(keeps_to_contract(signature, stored_case()));
  Field& mask = *std::ranges::find(signature.fields, "mask", &Field::name);
  std::erase(mask.dtypes, stored_case().batch.at("mask").dtype);
  mask.dtypes.push_back(Dtype::i64);
  EXPECT_FALSE(keeps_to_contract(signature, stored_case()));
}

TEST(KeepsToContract, LooksAtPinnedAxes) {
  LossSignature signature = signature_of(Masked::zero);
  signature.pinned = {{Axis::vocab, 5}};
  EXPECT_TRUE(keeps_to_contract(signature, stored_case()));
  signature.pinned = {{Axis::vocab, 4}};
  EXPECT_FALSE(keeps_to_contract(signature, stored_case()));
}

TEST(KeepsToContract, LooksAtHowLongAxesAre) {
  LossSignature signature = signature_of(Masked::zero);
  signature.longest = {{Axis::vocab, 5}};
  EXPECT_TRUE(keeps_to_contract(signature, stored_case()));
  signature.longest = {{Axis::vocab, 4}};
  EXPECT_FALSE(keeps_to_contract(signature, stored_case()));
}

TEST(KeepsToContract, WantsOneNumberForEachSequenceWhereTheCallerHasNoMore) {
  LossSignature signature = signature_of(Masked::zero);
  signature.fields[0].one_per_sequence = true;
  Case c = stored_case(std::numeric_limits<double>::quiet_NaN());  // which nobody sees
  EXPECT_FALSE(keeps_to_contract(signature, c));
  for (std::int64_t at = 0; at < 5; ++at) c.batch.at("x").set(at, at < 3 ? 1.0 : 2.0);
  EXPECT_TRUE(keeps_to_contract(signature, c));
}

TEST(KeepsToContract, WantsWhatCountsFirstWhereTheCallerPadsOnTheRight) {
  LossSignature signature = signature_of(Masked::anything);
  signature.prefix_mask = true;
  Case c = stored_case();
  EXPECT_TRUE(keeps_to_contract(signature, c));
  c.batch.at("mask").set(1, 0.0);
  EXPECT_FALSE(keeps_to_contract(signature, c));
  signature.prefix_mask = false;
  EXPECT_TRUE(keeps_to_contract(signature, c));
}

TEST(KeepsToContract, WantsEvenGroupsWhereTheCallerHasNoOthers) {
  LossSignature signature = signature_of(Masked::zero);
  Case c = stored_case();
  c.batch.at("group").set(1, 7.0);
  EXPECT_TRUE(keeps_to_contract(signature, c));
  signature.fields[2].even_groups = true;
  EXPECT_FALSE(keeps_to_contract(signature, c));
  c.batch.at("group").set(1, 0.0);
  EXPECT_TRUE(keeps_to_contract(signature, c));
}

}  // namespace
}  // namespace lossgate
