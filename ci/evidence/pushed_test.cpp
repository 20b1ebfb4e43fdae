// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/pushed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lossgate::ci::evidence {
namespace {

constexpr Pushed::Fault kFaults[] = {&Pushed::gradient_entry, &Pushed::token_term, &Pushed::loss,
                                     &Pushed::count, &Pushed::token_weight};

class PushedFault : public testing::TestWithParam<Pushed::Fault> {};

TEST_P(PushedFault, IsNoticedBeyondWhatTheBoundImpliesAndNotFarBelow) {
  std::int64_t asked = 0;
  const std::vector<Sound> subjects = sound_subjects({});
  for (const Sound& sound : subjects) {
    if (sound.loss->signature.reductions.empty() || sound.dtype != Dtype::f32) continue;
    for (std::int64_t i = 0; i < 10; ++i) {
      const Pushed pushed(sound, drawn(*sound.loss, sound.dtype, fuzz::Profile::benign, 1, i));
      if (!pushed.usable()) continue;
      fuzz::Choices choices(7);
      const auto pushes = (pushed.*GetParam())(choices);
      const double implied = pushes.empty() ? 1.0 : pushed.implied(pushes);
      if (implied >= 1.0) continue;
      ++asked;
      // A sound answer is off by half of what is accepted at most, and storing it rounds once more.
      EXPECT_TRUE(pushed.noticed(pushes, 2.5 * implied)) << sound.name() << " " << i;
      EXPECT_FALSE(pushed.noticed(pushes, 0.2 * implied)) << sound.name() << " " << i;
    }
  }
  EXPECT_GT(asked, 30);
}

INSTANTIATE_TEST_SUITE_P(All, PushedFault, testing::ValuesIn(kFaults));

TEST(Pushed, TakesTheLossForTheTermOfItsOnlyToken) {
  const std::vector<Sound> subjects = sound_subjects({});
  std::int64_t asked = 0;
  for (const Sound& sound : subjects) {
    if (sound.loss->signature.id != "value_clip" || sound.dtype != Dtype::f64) continue;
    for (std::int64_t i = 0; i < 200; ++i) {
      const Case c = drawn(*sound.loss, sound.dtype, fuzz::Profile::hostile, 1, i);
      const Pushed pushed(sound, c);
      if (!pushed.usable() ||
          std::ranges::count(valid_positions(sound.loss->signature, c), true) != 1) {
        continue;
      }
      fuzz::Choices choices(1);
      const auto term = pushed.token_term(choices), loss = pushed.loss(choices);
      if (term.empty()) continue;
      ++asked;
      EXPECT_NEAR(term.front().amount, loss.front().amount, 1e-12 * std::fabs(term.front().amount));
    }
  }
  EXPECT_GT(asked, 2);
}

}  // namespace
}  // namespace lossgate::ci::evidence
