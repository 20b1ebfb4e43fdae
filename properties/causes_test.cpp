// SPDX-License-Identifier: Apache-2.0
#include "properties/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "impl/catalog.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

TEST(Causes, AreOneListWithoutDoubles) {
  for (const Cause& each : causes()) {
    EXPECT_EQ(find_cause(each.name), &each) << each.name;
    EXPECT_TRUE(each.statement.ends_with(".")) << each.name;
    EXPECT_TRUE(each.symptom || !each.repair.empty()) << each.name;
  }
}

/// Whether the usual fix of a cause says so.
void expect_repair(std::string_view cause, const char* says) {
  EXPECT_THAT(std::string(find_cause(cause)->repair), testing::HasSubstr(says));
}

TEST(Causes, SayWhatAFilterMakesOfANan) {
  expect_repair("laundering", "drop what is beyond a bound");
}

// A second where at a position that counts would launder the gradient, too.
TEST(Causes, LetNobodyRepairTheGradientOfAPositionThatCounts) {
  expect_repair("value repaired, gradient not", "at a position that counts mend neither");
}

// Of exp(x.detach() - x) the value is right: negating it would break the loss.
TEST(Causes, LookForADetachWhereOnlyTheGradientHasTheWrongSign) {
  expect_repair("wrong sign", "whether detach stands on the wrong side");
}

TEST(Causes, TellAStrayGradientBehindAShiftFromAMalformedResult) {
  impl::Implementation fake = fake_grpo();
  const auto violation = [&](std::vector<std::string> beside) {
    fake.evaluate = [beside](const LossSignature&, const Case&) {
      LossResult none;
      none.refusal = Refusal{impl::kNoResult, -1, -1, "it is 3 behind the last token", beside};
      return none;
    };
    return check("reference_agreement", fake, grpo_case(2, 3)).violation.value();
  };
  const Violation stray = violation({"gradient.log_prob", "shifted"});
  EXPECT_EQ(stray.cause, kBeyondTheShift);
  EXPECT_EQ(stray.place.output, "gradient.log_prob");
  EXPECT_EQ(stray.detail, "it is 3 behind the last token");
  EXPECT_TRUE(gives_no_result(stray.cause));
  EXPECT_EQ(violation({"gradient.log_prob"}).cause, "malformed result");
  EXPECT_FALSE(gives_no_result("laundering"));
}

TEST(Causes, TellAFunctionThatReturnsNothingToReturn) {
  const std::string repair(find_cause("malformed result")->repair);
  EXPECT_TRUE(repair.starts_with("return every number")) << repair;
  EXPECT_EQ(repair.find("LOSSGATE_DONE"), repair.npos) << repair;
}

TEST(Causes, KnowThatWhatIsRefusedOnPlainNumbersTooHasNoResult) {
  EXPECT_TRUE(gives_no_result("legal input refused"));
  EXPECT_TRUE(gives_no_result("ordinary input refused"));
}

TEST(Causes, AreWhatFaultyVariantsAreRegisteredWith) {
  for (const impl::Implementation& variant : impl::catalog()) {
    if (variant.fault) EXPECT_TRUE(find_cause(variant.fault->cause)) << variant.fault->cause;
  }
}

}  // namespace
}  // namespace lossgate::properties
