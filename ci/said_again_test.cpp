// SPDX-License-Identifier: Apache-2.0
#include "ci/said_again.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

using properties::Outcome;
using properties::Verdict;

Outcome outcome_of(Verdict verdict, const std::string& reason = "") {
  Outcome outcome;
  outcome.verdict = verdict;
  outcome.reason = reason;
  return outcome;
}

/// What one case gave: an outcome of the property, and a finding where it is violated.
report::RunRecord answer_of(const std::string& property, const Outcome& outcome) {
  report::RunRecord answer;
  tally(report::cell(answer, "grpo", "one", "f32", property), outcome, 0);
  if (outcome.verdict == Verdict::violated) {
    report::RecordedFinding& finding = answer.findings.emplace_back();
    finding.property = property;
    finding.source_line = 7;
  }
  return answer;
}

TEST(SaidAgain, OfAPropertyThatFindsNothingIsThatItIsMended) {
  for (const auto& [outcome, why] :
       {std::pair(outcome_of(Verdict::held), "held"),
        std::pair(outcome_of(Verdict::vacuous, "no digit"), "vacuous: no digit"),
        std::pair(outcome_of(Verdict::skipped, "contract"), "skipped: contract"),
        std::pair(outcome_of(Verdict::skipped, report::kOutsideContract),
                  "skipped: outside the contract"),
        std::pair(outcome_of(Verdict::skipped, "unsupported: no such option"),
                  "skipped: unsupported: no such option")}) {
    const SaidAgain said = said_again("determinism", answer_of("determinism", outcome));
    EXPECT_FALSE(said.finding);
    EXPECT_EQ(said.mended, why);
  }
}

TEST(SaidAgain, OfOneThatIsStillViolatedIsWhatItFindsNow) {
  const auto answer = answer_of("determinism", outcome_of(Verdict::violated));
  const SaidAgain said = said_again("determinism", answer);
  ASSERT_TRUE(said.finding);
  EXPECT_EQ(said.finding->source_line, 7);
}

TEST(SaidAgain, CountsOfWhatIsNewTheViolationAlone) {
  auto answer = answer_of("finite_forward", outcome_of(Verdict::violated));
  merge(answer, answer_of("determinism", outcome_of(Verdict::held)));
  const report::RunRecord counted = cells_with(answer.findings[0], answer);
  ASSERT_EQ(counted.cells.size(), 1u);
  EXPECT_EQ(counted.cells[0].property, "finite_forward");
  EXPECT_EQ(counted.cells[0].verdicts[static_cast<std::size_t>(Verdict::violated)], 1);
  EXPECT_TRUE(counted.findings.empty());
  EXPECT_EQ(counted.cases_run, 0);
}

TEST(SaidAgain, IsNothingWhereTheQuestionWasNotPut) {
  const auto skipped = outcome_of(Verdict::skipped, "finite_forward violated");
  for (const report::RunRecord& answer : {report::RunRecord{}, answer_of("determinism", skipped),
                                          answer_of("finite_forward", outcome_of(Verdict::held))}) {
    const SaidAgain said = said_again("determinism", answer);
    EXPECT_FALSE(said.finding);
    EXPECT_EQ(said.mended, "");
  }
}

TEST(SaidAgain, OfAQuestionThatAContractLeavesOutIsThatWhateverElseFails) {
  for (const char* reason : {"contract", "contract: micro_batches"}) {
    auto answer = answer_of("split_invariance", outcome_of(Verdict::skipped, reason));
    merge(answer, answer_of("finite_backward", outcome_of(Verdict::violated)));
    EXPECT_EQ(said_again("split_invariance", answer).mended, std::string("skipped: ") + reason);
  }
}

TEST(SaidAgain, TakesACaseOnWhichNothingFailsForMended) {
  for (const auto& [reason, why] :
       {std::pair("not finite", "skipped: not finite"), std::pair("another formula", ""),
        std::pair("long case: no answer", "")}) {
    auto answer = answer_of("determinism", outcome_of(Verdict::skipped, reason));
    merge(answer, answer_of("finite_forward", outcome_of(Verdict::held)));
    EXPECT_EQ(said_again("determinism", answer).mended, why);
    merge(answer, answer_of("finite_backward", outcome_of(Verdict::violated)));
    EXPECT_EQ(said_again("determinism", answer).mended, "") << "what fails may hide it";
  }
}

TEST(SaidAgain, OfACrashIsThatTheCallReturns) {
  EXPECT_EQ(said_again("does_not_crash", {}).mended, "");
  for (const Verdict verdict : {Verdict::held, Verdict::violated}) {
    const auto answer = answer_of("determinism", outcome_of(verdict));
    EXPECT_EQ(said_again("does_not_crash", answer).mended, "held");
  }
  const auto hangs = answer_of("does_not_hang", outcome_of(Verdict::violated));
  EXPECT_TRUE(said_again("does_not_crash", hangs).finding) << "it still does not return";
}

}  // namespace
}  // namespace lossgate::ci
