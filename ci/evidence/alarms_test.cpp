// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "ci/evidence/kind.h"

namespace lossgate::ci::evidence {
namespace {

using testing::ElementsAre;
using testing::Field;

TEST(Alarms, AskAsManyCasesAsIsSaidOfTheLossesThatAreNamed) {
  const auto units = alarms({.losses = {"prompt_dedup"}, .cases = 250});
  EXPECT_THAT(units, ElementsAre(Field(&Unit::name, "prompt_dedup/f32/0"),
                                 Field(&Unit::name, "prompt_dedup/f32/100"),
                                 Field(&Unit::name, "prompt_dedup/f32/200")));
  EXPECT_EQ(units[2].run()["cases"], 100);
}

TEST(Alarms, AskOfALossOfManyDtypesEachInTurn) {
  const auto units = alarms({.losses = {"grpo"}, .cases = 1});
  EXPECT_THAT(units,
              ElementsAre(Field(&Unit::name, "grpo/f64/0"), Field(&Unit::name, "grpo/f32/0"),
                          Field(&Unit::name, "grpo/f16/0"), Field(&Unit::name, "grpo/bf16/0")));
}

}  // namespace
}  // namespace lossgate::ci::evidence
