// SPDX-License-Identifier: Apache-2.0
// Rule E4 of README.md, as far as calls are refused.
#include <gtest/gtest.h>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// Refuses everything, and leaves this behind.
impl::Implementation refusing(std::vector<std::string> changed) {
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [changed = std::move(changed)](const LossSignature&, const Case&) {
    LossResult result;
    result.refusal = Refusal{.argument = "advantage", .message = "no"};
    result.changed_settings = changed;
    return result;
  };
  return fake;
}

TEST(RuleE4, ACallThatRefusesLeavesSettingsAsTheyWere) {
  const auto outcome = [](const Case& c, std::vector<std::string> changed) {
    return check("inputs_not_mutated", refusing(std::move(changed)), c);
  };
  const Case legal = grpo_case(2, 3);
  const Outcome untidy = outcome(legal, {"torch.is_grad_enabled() is False"});
  ASSERT_EQ(untidy.verdict, Verdict::violated);
  EXPECT_EQ(untidy.violation->cause, "setting left changed");
  EXPECT_EQ(untidy.violation->detail,
            "torch.is_grad_enabled() is False after a call that refuses, and was not before");
  EXPECT_EQ(outcome(legal, {}).verdict, Verdict::skipped);
  Case empty = legal;
  for (std::int64_t t = 0; t < 3; ++t) mask_out(empty, 0, t), mask_out(empty, 1, t);
  EXPECT_EQ(outcome(empty, {"a setting is another"}).verdict, Verdict::violated);
}

TEST(RuleE4, AnInvalidCaseIsAskedWhereItIsToBeRefused) {
  Case invalid = grpo_case(2, 3);
  put(invalid, "mask", 1, 1, 2.0);
  impl::Implementation fake = refusing({"a setting is another"});
  EXPECT_EQ(check("inputs_not_mutated", fake, invalid).verdict, Verdict::violated);
  fake.contract.refuses_invalid = false;
  EXPECT_EQ(check("inputs_not_mutated", fake, invalid).verdict, Verdict::skipped);
}

}  // namespace
}  // namespace lossgate::properties
