// SPDX-License-Identifier: Apache-2.0
#include "regressions/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "corpora/files.h"
#include "impl/catalog.h"

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

TEST(Replays, ShowTheFirstThatFailsAndCountTheOthers) {
  using properties::Verdict;
  const impl::Implementation implementation;
  const auto failing_at = [&](std::vector<std::int64_t> times) {
    return replays(5, [&, times](std::int64_t time) {
      const bool fails = std::ranges::find(times, time) != times.end();
      Replay replay = with(fails ? Verdict::violated : Verdict::held, false, false, implementation,
                           implementation);
      replay.replies[0].answers[0].outcome.worst_ratio = static_cast<double>(time);
      return replay;
    });
  };
  const auto shown = [](const Replays& all) {
    return all.shown.replies[0].answers[0].outcome.worst_ratio;
  };
  const Replays sometimes = failing_at({3, 5}), never = failing_at({}), at_once = failing_at({1});
  EXPECT_EQ(sometimes.failed, 2);
  EXPECT_EQ(sometimes.first_failure, 3);
  EXPECT_EQ(shown(sometimes), 3.0);
  EXPECT_EQ(never.failed, 0);
  EXPECT_EQ(never.first_failure, 0);
  EXPECT_EQ(shown(never), 1.0);
  EXPECT_EQ(at_once.failed, 1);
  EXPECT_EQ(shown(at_once), 1.0);
}

/// One property of one implementation on the case of the mean of micro-batch means.
Replay means_of_means(std::string_view implementation, std::string_view property) {
  const Case c = corpora::read_case_file(LOSSGATE_SOURCE_DIR
                                         "/regressions/0004-mean-of-micro-batch-means.case",
                                         reference::find_signature);
  std::vector<const impl::Implementation*> asked;
  for (const impl::Implementation& i : impl::catalog(false)) {
    if (i.loss == c.spec.loss && (implementation.empty() ? !i.fault : i.name == implementation)) {
      asked.push_back(&i);
    }
  }
  asked = {asked.at(asked.size() - 1)};
  return replay(*reference::find_loss(c.spec.loss), c, asked, {properties::find_property(property)},
                {});
}

TEST(Replay, TellsOfARefusalWhereSomebodyIsAsked) {
  const reference::Loss& loss = *reference::find_loss("grpo");
  Case c = corpora::read_case_file(LOSSGATE_SOURCE_DIR "/corpora/seeds/grpo/on-policy.case",
                                   reference::find_signature);
  std::ranges::find(c.spec.options, "clip_low", [](const auto& pair) {
    return pair.first;
  })->second = None{};
  impl::Implementation narrow, open;
  narrow.unsupported = [](const Case&) { return "clip_low is fixed"; };
  open.unsupported = [](const Case&) { return std::nullopt; };
  EXPECT_FALSE(replay(loss, c, {&narrow}, {}, {}).refusal);
  const Replay asked = replay(loss, c, {&narrow, &open}, {}, {});
  ASSERT_TRUE(asked.refusal);
  EXPECT_EQ(asked.refusal->argument, "clip_low");
}

TEST(Replay, ShowsTheResultThatWasJudged) {
  const Replay replay = means_of_means("mean_of_micro_batch_means", "split_invariance");
  ASSERT_TRUE(replay.spot && replay.replies[0].answers[0].outcome.violation);
  const properties::Violation& violation = *replay.replies[0].answers[0].outcome.violation;
  const Sight& sight = replay.spot->sights.at(0);
  EXPECT_TRUE(replay.spot->split);
  EXPECT_EQ(sight.actual, violation.actual);
  EXPECT_EQ(sight.bound, violation.allowed + violation.half_width);
}

TEST(Replay, GivesALoneImplementationItsSibling) {
  const Replay replay = means_of_means("", "path_parity");
  EXPECT_GT(replay.replies.at(0).answers.at(0).outcome.compared, 0);
}

TEST(Allclose, IsThatOfTorchAsItIsCalledByDefault) {
  EXPECT_TRUE(allclose(1.000009, 1.0L));
  EXPECT_FALSE(allclose(1.00002, 1.0L));
  EXPECT_TRUE(allclose(9e-9, 0.0L));
  EXPECT_FALSE(allclose(2e-8, 0.0L));
  EXPECT_TRUE(allclose(HUGE_VAL, HUGE_VALL));
  EXPECT_FALSE(allclose(HUGE_VAL, 1.0L));
  EXPECT_FALSE(allclose(NAN, NAN));
}

}  // namespace
}  // namespace lossgate::regressions
