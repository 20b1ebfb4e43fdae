// SPDX-License-Identifier: Apache-2.0
#include "ci/ties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/candidates.h"
#include "ci/fake_function.h"

namespace lossgate::ci {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// A policy without a KL.
FakeFunction policy() {
  FakeFunction function("grpo");
  function.without("ref_log_prob").only(Reduction::token_mean);
  for (const Option& option : function.loss.signature.options) {
    function.with(option.name, option.nullable ? OptionValue(None{}) : option.standard);
  }
  set_value(function.constants, "kl_penalty", 0.0);
  return function;
}

TEST(Ties, LeaveOutWhatCannotMatter) {
  const Recognition found = policy().recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_THAT(found.equals, IsEmpty()) << "of a KL that counts for nothing";
}

TEST(Ties, AreAskedWhereAnEndOfAParameterTellsThem) {
  for (const double soft : {0.0, 1.0}) {
    FakeFunction divergence("jsd");  // at beta 0 a KL, or the cross-entropy of the teacher's labels
    divergence.with("soft_cross_entropy", soft).with("temperature", 1.0);
    divergence.only(Reduction::token_mean);
    const Recognition found = divergence.recognised();
    EXPECT_TRUE(found.whole());
    EXPECT_THAT(found.equals, IsEmpty()) << soft;
    EXPECT_THAT(found.subject.options, Contains(Pair("soft_cross_entropy", OptionValue(soft))));
  }
}

TEST(Ties, StayWhereNothingThatItAnswersTells) {
  FakeFunction divergence("jsd");
  divergence.with("soft_cross_entropy", 0.0).with("temperature", 1.0);
  divergence.only(Reduction::token_mean);
  divergence.before = [then = divergence.before](Case& c) {
    if (c.spec.number("beta") == 0.0) throw Refusal{"beta", -1, -1, "ValueError: beta"};
    then(c);
  };
  EXPECT_THAT(divergence.recognised().equals,
              ElementsAre(ElementsAre(Pair("soft_cross_entropy", OptionValue(1.0)))));
}

}  // namespace
}  // namespace lossgate::ci
