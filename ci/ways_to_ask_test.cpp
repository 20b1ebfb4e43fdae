// SPDX-License-Identifier: Apache-2.0
#include "ci/ways_to_ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ci/fake_function.h"

namespace lossgate::ci {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// It moves labels by one position, unless it is handed one more of them and of the logits.
struct ShiftingFunction : FakeFunction {
  ShiftingFunction() : FakeFunction("cross_entropy") { only(Reduction::token_mean); }

  LossResult answer(const impl::Subject& subject, const LossSignature& narrowed,
                    const Case& c) override {
    const auto longer = std::ranges::count_if(subject.arguments, [](const auto& argument) {
      return impl::is_converted(argument.second, "shifted");
    });
    Case moved = c;
    Tensor& label = moved.batch.at("label");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t i = 0; longer < 2 && i < label.size(); ++i) {
      const bool last = (i + 1) % tokens == 0;
      label.set(i, static_cast<double>(last ? kIgnoreLabel : label.integer_at(i + 1)));
    }
    return FakeFunction::answer(subject, narrowed, moved);
  }
};

TEST(WaysToAsk, HandOnePositionMoreToWhoeverShiftsLabels) {
  using Arguments = std::vector<std::pair<std::string, std::string>>;
  const Recognition found = ShiftingFunction().recognised();
  EXPECT_THAT(found.subject.reductions, ElementsAre(Reduction::token_mean));
  EXPECT_EQ(found.subject.arguments, (Arguments{{"logits", "field:logits as shifted"},
                                                {"label", "field:label as shifted"}}));
  EXPECT_FALSE(ShiftingFunction().recognised(false).whole());
  FakeFunction plain("cross_entropy");
  EXPECT_THAT(plain.only(Reduction::token_mean).recognised().subject.arguments, IsEmpty());
}

/// It takes the last valid advantage of a sequence for those of all its tokens, and wants one of
/// each: what a sequence shares meets each token's own.
struct MixingFunction : FakeFunction {
  explicit MixingFunction(bool also_wrong) : FakeFunction("grpo"), wrong(also_wrong) {
    only(Reduction::sequence_mean);
  }

  LossResult answer(const impl::Subject& subject, const LossSignature& narrowed,
                    const Case& c) override {
    for (const auto& [parameter, source] : subject.arguments) {
      if (!impl::is_converted(source, "rows")) continue;
      LossResult refused;
      refused.refusal = Refusal{"advantage", -1, -1, "RuntimeError: shapes"};
      return refused;
    }
    Case mixed = c;
    Tensor& advantage = mixed.batch.at("advantage");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t i = advantage.size() - 2; i >= 0; --i) {
      const bool ends = (i + 1) % tokens == 0 || mixed.batch.at("mask").at(i + 1) == 0.0;
      if (!ends) advantage.set(i, advantage.at(i + 1));
    }
    LossResult result = FakeFunction::answer(subject, narrowed, mixed);
    if (wrong) scale(result, 1.5 + static_cast<double>(tokens));
    return result;
  }

  bool wrong;
};

TEST(WaysToAsk, ExpandOneAdvantageOfASequenceForWhomAllOfItsTokensAreAlike) {
  using Arguments = std::vector<std::pair<std::string, std::string>>;
  const Recognition found = MixingFunction(false).recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(found.subject.arguments, (Arguments{{"advantage", "field:advantage as expanded"}}));
  EXPECT_THAT(found.remarks,
              Contains("right only where advantage is one number for each sequence"));
  EXPECT_THAT(FakeFunction("grpo").recognised().subject.arguments, IsEmpty());
  const Recognition wrong = MixingFunction(true).recognised();
  EXPECT_FALSE(wrong.whole());
  EXPECT_THAT(wrong.subject.arguments, IsEmpty()) << "it explains a part at most";
}

/// It returns log-probs, no loss, and takes no label that stands for none.
struct ScoringFunction : FakeFunction {
  ScoringFunction() : FakeFunction("log_prob") {
    without("log_prob_weight").without("entropy_weight").with("temperature", 1.0);
    takes_reduction = false;
  }

  LossResult answer(const impl::Subject& subject, const LossSignature& narrowed,
                    const Case& c) override {
    const bool index = std::ranges::any_of(subject.arguments, [](const auto& argument) {
      return impl::is_converted(argument.second, "ids");
    });
    if (index && subject.weighed_outputs &&
        subject.outputs == std::vector<std::string>{"log_prob"}) {
      return FakeFunction::answer(subject, narrowed, c);
    }
    LossResult refused;
    refused.refusal = Refusal{impl::kNoResult, -1, -1, "it returns no loss"};
    return refused;
  }
};

TEST(WaysToAsk, MakeALossOfWhatAHelperReturns) {
  const Recognition found = ScoringFunction().recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_TRUE(found.subject.weighed_outputs);
  EXPECT_THAT(found.subject.outputs, ElementsAre("log_prob"));
  EXPECT_THAT(found.subject.reductions, ElementsAre(Reduction::sum));
  EXPECT_THAT(found.remarks, Not(Contains(HasSubstr("does not take"))));
}

}  // namespace
}  // namespace lossgate::ci
