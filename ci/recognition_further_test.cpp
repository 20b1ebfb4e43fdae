// SPDX-License-Identifier: Apache-2.0
// What a search among losses need not ask or compare again, and never loses.
#include <gtest/gtest.h>

#include <cmath>

#include "ci/candidates.h"
#include "ci/fake_function.h"

namespace lossgate::ci {
namespace {

/// A function that is no loss of the catalog, and how often it was asked.
struct Nonsense : FakeFunction {
  Nonsense() : FakeFunction("sapo") {
    only(Reduction::token_mean);
    after = [](const Case&, LossResult& result) {
      for (Output& output : result.outputs) {
        for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
          output.tensor.set(i, std::sin(3.0 * output.tensor.at(i)) + 0.1);
        }
      }
    };
  }

  LossResult answer(const impl::Subject& subject, const LossSignature& narrowed,
                    const Case& c) override {
    ++asked;
    return FakeFunction::answer(subject, narrowed, c);
  }

  int asked = 0;
};

TEST(Recognition, AsksNothingAgainWhereItGoesOn) {
  Nonsense at_once;
  const Recognition whole_search = at_once.recognised(true);
  Nonsense in_two;
  const Recognition plain = in_two.recognised(false);
  ASSERT_TRUE(plain.plainly);
  const int first = in_two.asked;
  EXPECT_GT(first, 0);
  const Recognition further = recognise_further(in_two, plain);
  EXPECT_EQ(in_two.asked, at_once.asked) << "of which " << first << " were asked before";
  EXPECT_FALSE(further.whole());
  EXPECT_EQ(further.remarks, whole_search.remarks);
  EXPECT_EQ(further.likeness.candidate.options, whole_search.likeness.candidate.options);
  EXPECT_EQ(further.likeness.distance, whole_search.likeness.distance);
}

TEST(Recognition, FindsInOtherWaysWhatItWasNotAtFirst) {
  FakeFunction rows("sapo");
  rows.only(Reduction::token_mean);
  rows.before = [then = rows.before](Case& c) {
    then(c);
    Tensor& advantage = c.batch.at("advantage");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t i = 0; i < advantage.size(); ++i) {
      advantage.set(i, advantage.at(i - i % tokens));
    }
  };
  const Recognition plain = rows.recognised(false);
  ASSERT_FALSE(plain.whole());
  ASSERT_TRUE(plain.plainly);
  EXPECT_TRUE(recognise_further(rows, plain).whole());
}

TEST(Recognition, AsksAgainWhatRaised) {
  Nonsense raises;
  raises.before = [then = raises.before, &raises](Case& c) {
    then(c);
    if (raises.asked == 1) throw Refusal{"", -1, -1, "RuntimeError: not compiled yet"};
  };
  EXPECT_FALSE(raises.recognised(false).plainly);
  EXPECT_FALSE(FakeFunction("sapo").recognised(false).plainly) << "it is the loss";
}

/// PPO without a reference policy.
FakeFunction ppo() {
  FakeFunction function("grpo");
  function.without("ref_log_prob").only(Reduction::token_mean);
  for (const Option& option : function.loss.signature.options) {
    function.with(option.name, option.nullable ? OptionValue(None{}) : option.standard);
  }
  return function;
}

TEST(Recognition, TakesNoTermOfAFieldThatDoesNotReachTheFunction) {
  EXPECT_TRUE(ppo().with("kl_penalty", 0.0).recognised(false).whole());
  // That this one hears of the reference policy nevertheless is what no function does.
  const Recognition found = ppo().with("kl_penalty", 0.04).recognised(false);
  EXPECT_FALSE(found.whole());
  EXPECT_EQ(*find_value(found.likeness.candidate.options, "kl_penalty"), OptionValue(0.0));
}

}  // namespace
}  // namespace lossgate::ci
