// SPDX-License-Identifier: Apache-2.0
#include "properties/reading.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// The token to predict at the first position is impossible: its term is infinite by the formula.
Case impossible() {
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(c.batch.at("label").integer_at(0), -HUGE_VAL);
  return c;
}

std::optional<Reading> read_term(double term) {
  const auto fake = answering("cross_entropy", nullptr, [term](const Case&, LossResult& result) {
    output(result, "per_token").set(0, term);
  });
  return Reading::of(*reference::find_loss("cross_entropy"), fake, impossible());
}

TEST(Reading, TakesNoNumberForAnInfinityThatTheInputHas) {
  const auto reading = read_term(1e300);
  ASSERT_TRUE(reading);
  const auto& entries = reading->entries();
  const auto term = std::ranges::find_if(entries, &ReadEntry::wrong);
  ASSERT_NE(term, entries.end());
  EXPECT_EQ(reading->kind(*term), OutputKind::value);
  EXPECT_EQ(term->index, 0);
  EXPECT_EQ(term->accepted, 0.0);
  EXPECT_FALSE(reading->forward_right());
}

TEST(Reading, SaysNothingOfTheInfinityItself) {
  const auto reading = read_term(HUGE_VAL);
  ASSERT_TRUE(reading);
  EXPECT_TRUE(reading->right());
  EXPECT_TRUE(reading->finite());
}

TEST(Reading, AsksTheFormulaForWhatCallersPin) {
  reference::Loss pinned = *reference::find_loss("jsd");
  for (Option& option : pinned.signature.options) {
    if (option.name == "beta") option.low = option.high = 0.0;
  }
  Case c = ordinary_case("jsd");
  c.spec.set("beta", 0.0);
  const auto reversed = answering("jsd", [](Case& x) { x.spec.set("beta", 1.0); });
  const auto reading = Reading::of(pinned, reversed, c);
  ASSERT_TRUE(is_wrong(reading));
  Case other = c;
  other.spec.set("beta", 1.0);
  EXPECT_TRUE(reading->answers(other));
  other.spec.set("beta", 0.5);
  EXPECT_FALSE(reading->answers(other));
}

TEST(Reading, IsNeitherRightNorWrongWithoutAnAnswer) {
  EXPECT_FALSE(is_right(std::nullopt));
  EXPECT_FALSE(is_wrong(std::nullopt));
  EXPECT_TRUE(is_right(read_term(HUGE_VAL)));
  EXPECT_FALSE(is_wrong(read_term(HUGE_VAL)));
  EXPECT_TRUE(is_wrong(read_term(1.0)));
  EXPECT_FALSE(is_right(read_term(1.0)));
}

TEST(Reading, IsWrongInGradientsAloneWhereAllElseIsRight) {
  const auto gradient = answering("cross_entropy", nullptr, [](const Case&, LossResult& result) {
    output(result, "gradient.logits").set(0, 3.0);
  });
  const auto read = [&](const impl::Implementation& fake) {
    return Reading::of(*reference::find_loss("cross_entropy"), fake,
                       ordinary_case("cross_entropy"));
  };
  EXPECT_TRUE(is_wrong_in_gradients_alone(read(gradient)));
  EXPECT_FALSE(is_wrong_in_gradients_alone(read(answering("cross_entropy", nullptr))));
  EXPECT_FALSE(is_wrong_in_gradients_alone(read_term(1.0)));
  EXPECT_FALSE(is_wrong_in_gradients_alone(std::nullopt));
}

}  // namespace
}  // namespace lossgate::properties
