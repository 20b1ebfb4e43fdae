// SPDX-License-Identifier: Apache-2.0
#include "regressions/replay.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lossgate::regressions {
namespace {

TEST(UlpError, IsTheDistanceInSpacingsAtTheExpectedValue) {
  EXPECT_EQ(ulp_error(Dtype::f32, 1.0, 1.0L), 0.0);
  EXPECT_EQ(ulp_error(Dtype::f32, 1.0 + 0x1p-23, 1.0L), 1.0);
  EXPECT_EQ(ulp_error(Dtype::f32, 1.0, 1.0L + 0x1p-24L), 0.5);
  EXPECT_EQ(ulp_error(Dtype::bf16, 1.0, 2.0L), 64.0);
  EXPECT_EQ(ulp_error(Dtype::f64, 0.0, 0x1p-1074L), 1.0);
  EXPECT_EQ(ulp_error(Dtype::f16, 0x1p-24, 0.0L), 1.0);
}

TEST(UlpError, OfNanAgainstANumberIsInfinite) {
  EXPECT_EQ(ulp_error(Dtype::f32, NAN, 0.0L), HUGE_VAL);
  EXPECT_EQ(ulp_error(Dtype::f32, INFINITY, 0.0L), HUGE_VAL);
  EXPECT_EQ(ulp_error(Dtype::f32, 0.0, static_cast<reference::Real>(NAN)), HUGE_VAL);
  EXPECT_EQ(ulp_error(Dtype::f32, NAN, static_cast<reference::Real>(NAN)), 0.0);
  EXPECT_EQ(ulp_error(Dtype::f32, -INFINITY, static_cast<reference::Real>(-INFINITY)), 0.0);
}

Replay with(properties::Verdict verdict, bool expected, bool faulty,
            const impl::Implementation& sound, const impl::Implementation& wrong) {
  Replay replay;
  Reply& reply = replay.replies.emplace_back();
  reply.implementation = faulty ? &wrong : &sound;
  Answer& answer = reply.answers.emplace_back();
  answer.outcome.verdict = verdict;
  answer.expected = expected;
  return replay;
}

TEST(Replay, FailsOnASoundViolationAndOnAnExpectedOneThatIsNotThere) {
  using properties::Verdict;
  const impl::Implementation sound;
  impl::Implementation wrong;
  wrong.fault.emplace();
  const auto failed = [&](Verdict verdict, bool expected, bool faulty) {
    return with(verdict, expected, faulty, sound, wrong).failed();
  };
  EXPECT_TRUE(failed(Verdict::violated, false, false));
  EXPECT_FALSE(failed(Verdict::held, false, false));
  EXPECT_FALSE(failed(Verdict::violated, true, true));
  EXPECT_TRUE(failed(Verdict::held, true, true));
  EXPECT_TRUE(failed(Verdict::vacuous, true, true));
  EXPECT_FALSE(failed(Verdict::violated, false, true)) << "wrong on purpose";
  EXPECT_FALSE(failed(Verdict::note, false, false));
}

}  // namespace
}  // namespace lossgate::regressions
