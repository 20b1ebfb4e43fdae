// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/signature.h"

#include <gtest/gtest.h>

#include <set>

namespace lossgate {
namespace {

TEST(Signature, FindsFieldsAndOptionsByName) {
  LossSignature signature;
  signature.fields = {{.name = "log_prob", .axes = {}}, {.name = "mask", .axes = {}}};
  signature.options = {{.name = "clip_low", .standard = 0.2}};
  EXPECT_EQ(signature.find_field("mask"), &signature.fields[1]);
  EXPECT_EQ(signature.find_option("clip_low"), &signature.options[0]);
  EXPECT_EQ(signature.find_field("clip_low"), nullptr);
  EXPECT_EQ(signature.find_option("mask"), nullptr);
}

TEST(Signature, HasAnExtentForAPinnedAxisAlone) {
  LossSignature signature;
  signature.pinned = {{Axis::support, 1}};
  EXPECT_EQ(signature.pinned_extent(Axis::support), 1);
  EXPECT_EQ(signature.pinned_extent(Axis::vocab), std::nullopt);
}

TEST(Signature, IsLogisticByAScaledLogRatioOrByOdds) {
  LossSignature signature;
  signature.fields = {{.name = "log_prob", .axes = {}}};
  EXPECT_FALSE(signature.is_logistic());
  signature.fields[0].leaves_rest = true;
  EXPECT_TRUE(signature.is_logistic());
  signature.fields[0].leaves_rest = false;
  signature.scale = "beta";
  EXPECT_TRUE(signature.is_logistic());
}

TEST(Names, OfReductionsReadBack) {
  std::set<std::string_view> names;
  for (Reduction reduction : kAllReductions) {
    EXPECT_EQ(parse_reduction(name(reduction)), reduction);
    names.insert(name(reduction));
  }
  EXPECT_EQ(names.size(), std::size(kAllReductions));
  EXPECT_EQ(parse_reduction("mean"), std::nullopt);
  EXPECT_EQ(parse_reduction("?"), std::nullopt);
  EXPECT_EQ(parse_reduction(""), std::nullopt);
}

TEST(Names, OfAxesAreDistinct) {
  std::set<std::string_view> names;
  for (Axis axis : kAllAxes) names.insert(name(axis));
  EXPECT_EQ(names.size(), std::size(kAllAxes));
  EXPECT_FALSE(names.contains("?"));
}

TEST(Names, OfRolesAreDistinct) {
  std::set<std::string_view> names;
  for (Role role :
       {Role::differentiable, Role::constant, Role::label, Role::mask, Role::weight, Role::group}) {
    names.insert(name(role));
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_FALSE(names.contains("?"));
}

}  // namespace
}  // namespace lossgate
