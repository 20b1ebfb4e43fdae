// SPDX-License-Identifier: Apache-2.0
#include "report/finding_text.h"

#include <gtest/gtest.h>

#include "properties/property.h"
#include "report/board.h"
#include "report/given_record.h"

namespace lossgate::report {
namespace {

TEST(FindingText, EveryPropertyHasAUsualFix) {
  for (const properties::Property& property : properties::catalog()) {
    EXPECT_NE(usual_fix(property.name), usual_fix("no property")) << property.name;
  }
}

TEST(FindingText, TheFixIsThatOfTheCauseWhereItSaysMore) {
  const auto behind_bound = usual_fix("finite_backward", "non-finite slope behind a bound");
  EXPECT_NE(behind_bound, usual_fix("finite_backward", "non-finite value behind a mask"));
  EXPECT_NE(behind_bound.find("before exp"), std::string_view::npos);
  EXPECT_EQ(usual_fix("determinism", "some cause"), usual_fix("determinism"));
}

TEST(FindingText, TheReproLineNamesNoPropertyThatAReplayRefuses) {
  RecordedFinding finding;
  finding.case_file = "findings/a.case";
  finding.implementation = "b";
  finding.property = "finite_forward";
  EXPECT_EQ(repro_line(finding, "run"),
            "lossgate replay run/findings/a.case --impl b --property finite_forward");
  finding.property = "does_not_crash";
  EXPECT_EQ(repro_line(finding, ""), "lossgate replay findings/a.case --impl b");
}

TEST(FindingText, CallsALineGuiltyOnlyWhereItIsKnown) {
  RecordedFinding finding;
  finding.source_file = "losses.py";
  finding.source_line = 7;
  EXPECT_NE(finding_text(finding, "", "").find("function  losses.py:7\n"), std::string::npos);
  finding.source_text = "exp(100) = inf at losses.py:9: ratio = x.exp()";
  const std::string text = finding_text(finding, "", "");
  EXPECT_NE(text.find("code      exp(100) = inf"), std::string::npos) << text;
  EXPECT_EQ(text.find("function"), std::string::npos) << text;
}

TEST(Board, TellsWhatIsMended) {
  RunRecord record;
  record.mended.push_back({.fingerprint = "grpo||a|determinism|x",
                           .loss = "grpo",
                           .implementation = "a",
                           .property = "determinism",
                           .case_file = "findings/a.case",
                           .reason = "held"});
  EXPECT_EQ(verdict_line(record), "green: 0 red findings, 1 mended");
  const std::string line =
      "mended: grpo||a|determinism|x: held when asked again (findings/a.case)\n";
  EXPECT_NE(board(record, {}).find(line), std::string::npos);
}

TEST(RunRecord, TakesNothingForMendedThatSomebodyMeets) {
  RunRecord whole, part;
  whole.mended.resize(2);
  whole.mended[0].fingerprint = "a";
  whole.mended[1].fingerprint = "b";
  part.findings.emplace_back().fingerprint = "b";
  merge(whole, part);
  ASSERT_EQ(whole.mended.size(), 1U);
  EXPECT_EQ(whole.mended[0].fingerprint, "a");
}

TEST(FindingText, TellsInOneLineWhatACampaignMeets) {
  RecordedFinding finding = finding_of("f", "rare", 2);
  EXPECT_EQ(met_line(finding, "out"),
            "finite_backward VIOLATED by one (grpo, f32; unbounded exponent): "
            "out/findings/0123456789abcdef.case");
  finding.state = "waived";
  EXPECT_NE(met_line(finding, "out").find("exponent; waived): out/"), std::string::npos);
}

TEST(FindingText, SaysHowFarRoundingTakesWhatIsRight) {
  RecordedFinding finding = finding_of("f", "rare", 2);
  finding.expected = "0.5";
  finding.half_width = finding.allowed = 0.25;
  EXPECT_EQ(expected_text(finding), "0.5");
  finding.half_width = 0.5;
  EXPECT_EQ(expected_text(finding), "0.5, or up to 0.5 from it, as rounding decides");
  finding.expected = "nan";
  EXPECT_EQ(expected_text(finding).find("rounding"), std::string::npos);
}

TEST(FindingText, BreaksAtAWordWhatIsToBeReadAndCutsNothingOfIt) {
  RecordedFinding finding = finding_of("f", "rare", 2);
  finding.place = "loss";
  finding.detail = "the answer is that of another value of clip_high, as it is at each of the ";
  finding.detail += "plain places that were looked at, whatever else was set beside it, and of ";
  finding.detail += "no other option, however far it was moved (confidence 0.95)";
  const std::string text = finding_text(finding, "", "");
  for (const char* part : {"  place     loss: the answer is that of another value of clip_high, ",
                           "\n            were looked at, ", "(confidence 0.95)\n"}) {
    EXPECT_NE(text.find(part), text.npos) << part << " in " << text;
  }
}

TEST(FindingText, CallsAFixOneToTryWhereNothingSaysWhy) {
  RecordedFinding finding = finding_of("f", "rare", 2);
  const auto told = [&](const char* property, const char* cause, double confidence) {
    finding.property = property;
    finding.cause = cause;
    finding.confidence = confidence;
    const std::string text = finding_text(finding, "", "");
    const bool open = text.find(std::string(cause) + "; no experiment says more\n") != text.npos;
    EXPECT_EQ(text.find("\n  to try    ") != text.npos, open) << text;
    EXPECT_EQ(text.find("\n  usual fix ") == text.npos, open) << text;
    return open ? "to try" : "usual fix";
  };
  EXPECT_STREQ(told("finite_forward", "not finite", 0.0), "to try");
  EXPECT_STREQ(told("split_invariance", "mean of means", 0.0), "to try");
  EXPECT_STREQ(told("split_invariance", "mean of means", 0.95), "usual fix");
  EXPECT_STREQ(told("inputs_not_mutated", "input overwritten", 0.0), "usual fix");  // it was seen
  EXPECT_STREQ(told("does_not_crash", "exited with status 7", 0.0), "usual fix");
}

TEST(FindingText, SaysWhereNobodyLookedForTheCause) {
  RecordedFinding finding = finding_of("f", "rare", 2);
  finding.cause = "not finite";
  finding.no_experiment = "--no-causes";
  const std::string text = finding_text(finding, "", "");
  EXPECT_NE(text.find("  cause     not finite; no experiment was made: --no-causes\n  to try    "),
            std::string::npos)
      << text;
  finding.confidence = 0.95;  // one was made all the same
  EXPECT_EQ(cause_text(finding), "not finite");
}

TEST(FindingText, SaysWithWhichOptionsTheNumberIsExpected) {
  RecordedFinding finding = finding_of("f", "rare", 2);
  finding.options = {"reduction token_mean", "beta 0.1"};
  EXPECT_NE(finding_text(finding, "", "")
                .find("(0xbf800000)\n  options   reduction token_mean, beta 0.1\n"),
            std::string::npos);
  finding.options.clear();
  EXPECT_EQ(finding_text(finding, "", "").find("options"), std::string::npos);
}

TEST(FindingText, CutsNothingThatIsToBeCopied) {
  const std::string longest(300, 'x');
  RecordedFinding finding;
  finding.fingerprint = finding.repro = longest;
  finding.state = "red";
  finding.detail = std::string(580, 'd') + "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9";
  const std::string text = finding_text(finding, "", "");
  EXPECT_NE(text.find("replay    " + longest + "\n"), text.npos) << text;
  EXPECT_NE(text.find(longest + " | reason | issue | expires YYYY-MM-DD\n"), text.npos) << text;
  for (const char* end : {"d...", "\u00e9..."}) {
    if (text.find(end) != text.npos) return;
  }
  FAIL() << "cut within a character: " << text;
}

}  // namespace
}  // namespace lossgate::report
