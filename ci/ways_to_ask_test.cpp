// SPDX-License-Identifier: Apache-2.0
#include "ci/ways_to_ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ci/fake_function.h"

namespace lossgate::ci {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace lossgate::ci
