// SPDX-License-Identifier: Apache-2.0
#include "ci/declarations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace lossgate::ci {
namespace {

using impl::DeclaredArithmetic;
using impl::DeclaredSum;

TEST(Candidates, KeepTheOrderThatIsDeclaredButWhereTheyConcedeAnother) {
  const DeclaredSum online{SumOrder::online, 5.0, {}};
  const DeclaredArithmetic declared{.form = "shifted", .sum = online, .subnormals_flushed = true};
  const auto all = candidates(declared, false, Dtype::bf16);
  EXPECT_EQ(
      all.front(),
      (DeclaredArithmetic{
          .compute = Dtype::f32, .form = "shifted", .sum = online, .subnormals_flushed = true}));
  const auto keeps = [&](const DeclaredArithmetic& one) { return one.sum == online; };
  const auto others = std::ranges::count_if(all, std::not_fn(keeps));
  EXPECT_GT(others, 0) << "a sum in sequence, or in few digits";
  EXPECT_GT(std::ranges::count_if(all, keeps), 4 * others);
  for (const DeclaredArithmetic& one : all) EXPECT_EQ(one.subnormals_flushed, true);
  EXPECT_TRUE(std::ranges::any_of(all, [](const auto& one) { return one.form.empty(); }));
  EXPECT_TRUE(std::ranges::all_of(candidates(declared, true, Dtype::bf16), keeps))
      << "whose order fits as it is";
}

TEST(Candidates, SayNothingOfItselfWhereNothingIsDeclared) {
  EXPECT_EQ(candidates({}, false, Dtype::f32).front(), DeclaredArithmetic());
  EXPECT_EQ(candidates({}, false, Dtype::bf16).front(), DeclaredArithmetic{.compute = Dtype::f32});
}

TEST(Candidates, TakeBackTheStagesThatAreDeclared) {
  const DeclaredArithmetic declared{.stages = {{Stage::per_token, {}}}};
  EXPECT_TRUE(candidates(declared, false, Dtype::bf16).front().stages.empty());
}

}  // namespace
}  // namespace lossgate::ci
