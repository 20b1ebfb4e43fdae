// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "properties/transforms.h"
#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::properties {
namespace {

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
