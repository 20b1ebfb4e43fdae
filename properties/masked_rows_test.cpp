// SPDX-License-Identifier: Apache-2.0
// Rules C4, C6 and D1 of README.md at their edges: layouts that follow the numbers, rows that were
// infinite before they were masked, splits of what is to be refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "properties/agreement.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// It multiplies by the mask, but returns zeros for an empty batch, as trainers do that never ask
/// their loss for one.
impl::Implementation multiplying_where_anything_counts() {
  impl::Implementation fake = fake_grpo(Flaw::mask_multiplied);
  fake.evaluate = [broken = fake.evaluate, sound = fake_grpo().evaluate](
                      const LossSignature& signature, const Case& c) {
    const std::vector<bool> valid = valid_positions(signature, c);
    const bool empty = std::ranges::find(valid, true) == valid.end();
    return empty ? sound(signature, c) : broken(signature, c);
  };
  return fake;
}

TEST(RuleC6, WhatAnEmptyRowsDataDoesIsNotBlamedOnItsCount) {
  const impl::Implementation fake = multiplying_where_anything_counts();
  Case c = grpo_case(2, 3);
  c.spec.set("log_ratio_clamp", None{});
  for (std::int64_t s = 0; s < 2; ++s) {
    for (std::int64_t t = 0; t < 3; ++t) put(c, "advantage", s, t, 0.0);
  }
  put(c, "old_log_prob", 0, 0, -1000.0);
  put(c, "old_log_prob", 1, 0, -1000.0);
  const Outcome outcome = check("empty_is_zero", fake, c);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "non-finite value behind a mask");
}

TEST(RuleC6, WhatTheDataOfARowDoesOnceItIsMaskedIsNoOverflowOfBefore) {
  const impl::Implementation fake = multiplying_where_anything_counts();
  Case c = grpo_case(2, 3);
  c.spec.set("log_ratio_clamp", None{});
  put(c, "advantage", 0, 0, -1.0);
  put(c, "old_log_prob", 0, 0, get(c, "log_prob", 0, 0) - 100.0);  // its own term is infinite
  const Outcome outcome = check("empty_is_zero", fake, c);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "non-finite value behind a mask");
}

TEST(RuleD1, ACaseThatIsToBeRefusedIsNotSplitWhateverItsContract) {
  impl::Implementation fake = fake_grpo();
  fake.contract.empty = Empty::error;
  Case c = grpo_case(2, 3);
  put(c, "mask", 1, 1, 2.0);
  c.split.parts = {{0, {0}}, {0, {1}}};
  EXPECT_EQ(check("split_invariance", fake, c).verdict, Verdict::skipped);
}

TEST(RuleC4, AsksForEqualBitsOfEqualStridesAlone) {
  const auto follows = [](double by, bool whatever) {
    impl::Implementation fake = fake_grpo();
    fake.evaluate = [sound = fake.evaluate, by, whatever](const LossSignature& signature,
                                                          const Case& c) {
      LossResult result = sound(signature, c);
      const bool other = get(c, "advantage", 1, 2) != 0.0;  // a row that is not one number
      Tensor& loss = result.outputs.front().tensor;
      if (other && (whatever || c.layout == Layout::mixed)) loss.set(0, loss.at(0) + by);
      return result;
    };
    return fake;
  };
  Case c = grpo_case(2, 3);
  mask_out(c, 1, 2);
  put(c, "advantage", 1, 2, 0.0);
  c.layout = Layout::mixed;
  EXPECT_EQ(check("masked_positions_inert", follows(1e-7, false), c).verdict, Verdict::held);
  EXPECT_EQ(check("masked_positions_inert", follows(1e-3, false), c).verdict, Verdict::violated);
  EXPECT_EQ(check("masked_positions_inert", follows(1e-7, true), c).verdict, Verdict::violated);
  EXPECT_EQ(check("masked_positions_inert", follows(1e-3, true), c).verdict, Verdict::violated);
  c.layout = Layout::contiguous;
  EXPECT_EQ(check("masked_positions_inert", follows(1e-3, true), c).verdict, Verdict::violated);
}

}  // namespace
}  // namespace lossgate::properties
