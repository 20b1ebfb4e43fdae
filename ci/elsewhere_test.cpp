// SPDX-License-Identifier: Apache-2.0
#include "ci/elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/candidates.h"
#include "ci/fake_function.h"

namespace lossgate::ci {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Elsewhere, WarnsOfADefaultThatAGateWillNotAsk) {
  FakeFunction scaled("jsd");  // by a factor that nothing of it explains
  scaled.with("beta", 0.0).only(Reduction::token_mean);
  scaled.defaults = {{"temperature", 2.0}};
  scaled.after = [](const Case& c, LossResult& result) {
    scale(result, c.spec.number("temperature") == 1.0 ? 1.0 : 3.0);
  };
  const char* said =
      "temperature: at its own default of 2 it is 3 times the formula, and will not be asked there";
  EXPECT_THAT(scaled.recognised().remarks, Contains(said));
  EXPECT_THAT(scaled.recognised().faults, IsEmpty()) << "a convention, maybe";
  scaled.defaults = {{"temperature", 1.0}};
  EXPECT_THAT(scaled.recognised().remarks, Not(Contains(HasSubstr("its own default"))));
  FakeFunction deaf("grpo");
  deaf.before = [](Case& c) { c.spec.set("clip_high", 0.3); };
  deaf.defaults = {{"clip_high", 0.2}};
  const Recognition found = deaf.recognised();
  EXPECT_THAT(
      found.faults,
      ElementsAre("whoever leaves clip_high at its own default of 0.2 gets another formula"));
  EXPECT_EQ(find_value(found.subject.options, "clip_high"), nullptr) << "a gate is to see it";
  EXPECT_EQ(*find_value(found.let_go, "clip_high"), OptionValue(0.3));
  EXPECT_THAT(found.remarks, Not(Contains(HasSubstr("will not be asked there"))));
}

TEST(Elsewhere, FindsALossThatIsOffByAPowerOfAParameter) {
  FakeFunction once("jsd");  // not by the temperature's square, as distillation has it
  once.with("beta", 0.0).only(Reduction::token_mean);
  once.after = [](const Case& c, LossResult& result) {
    scale(result, c.spec.number("temperature"));
  };
  const Recognition found = once.recognised();
  EXPECT_THAT(
      found.faults,
      ElementsAre(HasSubstr("temperature is a parameter, and the loss is off by a power of it")));
  EXPECT_EQ(find_value(found.subject.options, "temperature"), nullptr) << "a gate is to see it";
}

TEST(Elsewhere, FindsAParameterThatIsRightAtSomeValuesOnly) {
  FakeFunction swapped("jsd");  // the mixture has the one's weight for the other's, as GKD had it
  swapped.with("temperature", 1.0).only(Reduction::token_mean);
  swapped.defaults = {{"beta", 0.5}};
  swapped.before = [then = swapped.before](Case& c) {
    then(c);
    const double beta = c.spec.number("beta");
    if (beta != 0.0 && beta != 1.0) c.spec.set("beta", 1.0 - beta);
  };
  Recognition found = swapped.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_THAT(
      found.faults,
      ElementsAre("beta is a parameter, and any other value than 0, 0.5 or 1 is another formula"));
  EXPECT_THAT(found.remarks, Contains("right only where beta is 0, 0.5 or 1"));
  EXPECT_EQ(find_value(found.subject.options, "beta"), nullptr) << "a gate is to see it";

  FakeFunction refuses = swapped;  // and says so
  refuses.before = [then = swapped.before](Case& c) {
    const double beta = c.spec.number("beta");
    if (beta != 0.0 && beta != 0.5 && beta != 1.0) {
      throw Refusal{"beta", -1, -1, "NotImplementedError: beta"};
    }
    then(c);
  };
  found = refuses.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(*find_value(found.subject.options, "beta"), OptionValue(0.5)) << "not what it refuses";
  EXPECT_THAT(found.remarks, Contains("right only where beta is 0, 0.5 or 1"));
}

TEST(Elsewhere, SaysWhichOptionIsIgnored) {
  FakeFunction deaf("grpo");
  deaf.before = [](Case& c) { c.spec.set("clip_high", 0.3); };
  const Recognition found = deaf.recognised();
  EXPECT_EQ(find_value(found.subject.options, "clip_high"), nullptr) << "a gate is to see it";
  EXPECT_THAT(found.remarks, Contains("right only where clip_high is 0.3"));
  EXPECT_THAT(found.faults,
              ElementsAre("clip_high is a parameter, and any other value than 0.3 is another "
                          "formula"));
}

}  // namespace
}  // namespace lossgate::ci
