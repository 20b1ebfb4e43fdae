// SPDX-License-Identifier: Apache-2.0
#include "ci/never_told.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Brought distillation(OptionValue kept, OptionValue own) {
  Brought brought;
  brought.subject.loss = "jsd";
  brought.subject.options = {{"temperature", std::move(kept)}, {"beta", 0.0}};
  brought.greeting.options = {"temperature"};
  brought.greeting.defaults = {{"temperature", std::move(own)}};
  return brought;
}

TEST(NeverTold, NamesAParameterThatStaysElsewhereThanAtItsOwnDefault) {
  EXPECT_THAT(
      never_told(distillation(1.0, 2.0)),
      ElementsAre("temperature other than 1, a parameter of the function whose own default is 2"));
}

TEST(NeverTold, SaysNothingOfWhatIsAskedOrCannotBe) {
  EXPECT_THAT(never_told(distillation(2.0, 2.0)), IsEmpty());
  EXPECT_THAT(never_told(distillation(impl::kAnyNumber, 2.0)), IsEmpty()) << "any number is asked";
  EXPECT_THAT(never_told(distillation(1.0, None{})), IsEmpty()) << "no value of this option";
  Brought free = distillation(1.0, 2.0);
  free.subject.options.clear();
  EXPECT_THAT(never_told(free), IsEmpty());
  Brought written = distillation(1.0, 2.0);
  written.greeting.options.clear();
  EXPECT_THAT(never_told(written), IsEmpty()) << "the file gives that parameter something else";
}

TEST(TakenAs, SaysAtWhatAnOptionStandsThatNobodySays) {
  Brought brought = distillation(1.0, 2.0);
  EXPECT_THAT(taken_as(brought), IsEmpty()) << "its file says both";
  brought.fixed = {"beta"};
  EXPECT_THAT(taken_as(brought), ElementsAre("beta 0"));
  brought.subject.options.emplace_back("num_items", 8.0);
  brought.fixed.emplace_back("num_items");
  EXPECT_THAT(taken_as(brought), ElementsAre("beta 0", "num_items 8"));
  brought.subject.reductions = {Reduction::token_mean};
  EXPECT_THAT(taken_as(brought), ElementsAre("beta 0")) << "it divides by tokens";
}

}  // namespace
}  // namespace lossgate::ci
