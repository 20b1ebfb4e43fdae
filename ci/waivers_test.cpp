// SPDX-License-Identifier: Apache-2.0
#include "ci/waivers.h"

#include <gtest/gtest.h>

#include "ci/errors.h"

namespace lossgate::ci {
namespace {

report::RunRecord record_of(const std::string& fingerprint, const std::string& grade) {
  report::RunRecord record;
  report::RecordedFinding& finding = record.findings.emplace_back();
  finding.fingerprint = fingerprint;
  finding.grade = grade;
  return record;
}

std::string state(const std::string& grade, const Policy& policy) {
  report::RunRecord record = record_of("grpo|sum|x|finite_backward|cause|loss", grade);
  judge(record, policy);
  return record.findings[0].state;
}

constexpr char kWaiver[] =
    "grpo|*|x|finite_backward|* | known upstream | #12 | expires 2026-03-31\n";

TEST(Waivers, HoldUntilTheirLastDayAndAreRedAfterIt) {
  const auto waivers = parse_waivers(kWaiver, "waivers.txt");
  EXPECT_EQ(state("rare", {.waivers = waivers, .baseline = {}, .today = "2026-03-31"}), "waived");
  EXPECT_EQ(state("rare", {.waivers = waivers, .baseline = {}, .today = "2026-04-01"}),
            "expired waiver");
}

TEST(Waivers, AreReadWithCommentsAndEmptyLines) {
  const auto waivers =
      parse_waivers("# why\n\n" + std::string(kWaiver) + "  # more\r\n", "waivers.txt");
  ASSERT_EQ(waivers.size(), 1U);
  EXPECT_EQ(waivers[0].reason, "known upstream");
  EXPECT_EQ(waivers[0].issue, "#12");
  EXPECT_EQ(waivers[0].line, 3);
}

TEST(Waivers, NameFileAndLineOfWhatIsWrong) {
  for (const char* bad :
       {"a | b | c", "a | b | c | 2026-01-01", "a | b | c | expires 2026-02-30",
        "a | b | c | expires soon", " | b | c | expires 2026-01-01", "a | b | c | d | e"}) {
    try {
      parse_waivers("# fine\n" + std::string(bad) + "\n", "waivers.txt");
      FAIL() << bad;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("waivers.txt:2: ")) << error.what();
    }
  }
}

TEST(FailOn, DecidesWhichGradesAreRed) {
  using properties::Grade;
  const auto policy = [](Grade grade) {
    return Policy{.fail_on = grade, .waivers = {}, .baseline = {}, .today = "2026-01-01"};
  };
  EXPECT_EQ(state("ordinary", policy(Grade::ordinary)), "red");
  EXPECT_EQ(state("rare", policy(Grade::ordinary)), "tolerated");
  EXPECT_EQ(state("rare", policy(Grade::rare)), "red");
  EXPECT_EQ(state("adversarial", policy(Grade::rare)), "tolerated");
  EXPECT_EQ(state("adversarial", policy(Grade::adversarial)), "red");
}

TEST(Baseline, AcceptsWhatItWasMadeFromAndNothingPlainer) {
  const auto known = parse_baseline(
      baseline_text(record_of("grpo|sum|x|finite_backward|cause|loss", "rare")), "baseline.txt");
  ASSERT_EQ(known.size(), 1U);
  const Policy policy{.waivers = {}, .baseline = known, .today = "2026-01-01"};
  EXPECT_EQ(state("rare", policy), "known");
  EXPECT_EQ(state("ordinary", policy), "red");
}

/// A run that asked `x` of grpo for one property.
report::RunRecord asked_of_x() {
  report::RunRecord record;
  record.subjects.emplace_back();
  record.subjects.back().loss = "grpo";
  record.subjects.back().name = "x";
  record.properties = {{"finite_backward", "core", ""}};
  return record;
}

TEST(Baseline, SaysWhatVanished) {
  const std::string gone = "grpo|sum|x|finite_backward|cause|loss";
  const Policy policy{.waivers = {}, .baseline = {{gone, "rare", "-"}}, .today = "2026-01-01"};
  report::RunRecord record = asked_of_x();
  judge(record, policy);
  EXPECT_EQ(record.vanished, std::vector<std::string>{gone});
  record.vanished.clear();
  record.request.losses = {"grpo"};
  judge(record, policy);
  EXPECT_TRUE(record.vanished.empty());
}

TEST(Baseline, KeepsOfHowManyCasesItIs) {
  report::RunRecord record = record_of("grpo|sum|x|finite_backward|cause|loss", "rare");
  record.cases_run = 1080;
  const std::string text = baseline_text(record);
  EXPECT_EQ(cases_of_baseline(text), 1080);
  EXPECT_EQ(cases_of_baseline("# A comment.\ngrpo|x | rare | # Of a run of 9 cases.\n"), 0);
  const Policy policy{.waivers = {},
                      .baseline = {{"grpo|sum|x|finite_backward|cause|loss", "rare", "-"}},
                      .baseline_cases = 1080,
                      .today = "2026-01-01"};
  report::RunRecord fewer = asked_of_x();
  fewer.cases_planned = fewer.cases_run = 40;
  judge(fewer, policy);
  EXPECT_EQ(fewer.vanished.size(), 1U);
  EXPECT_EQ(fewer.baseline_cases, 1080);
}

TEST(Baseline, SaysNothingOfWhatWasNotAsked) {
  const Policy policy{.waivers = {},
                      .baseline = {{"grpo|sum|y|finite_backward|cause|loss", "rare", "-"},
                                   {"grpo|sum|x|bounds_hold|cause|loss", "rare", "-"},
                                   {"jsd|sum|x|finite_backward|cause|loss", "rare", "-"}},
                      .today = "2026-01-01"};
  report::RunRecord record = asked_of_x();
  judge(record, policy);
  EXPECT_TRUE(record.vanished.empty());
}

TEST(Policy, NamesNothingThatIsIdleOfACampaign) {
  const Policy policy{.waivers = {{"grpo|sum|x|*", "r", "i", "2026-12-31"}},
                      .baseline = {{"grpo|sum|x|finite_backward|cause|loss", "rare", "-"}},
                      .today = "2026-01-01",
                      .names_idle = false};
  report::RunRecord record = asked_of_x();
  judge(record, policy);
  EXPECT_TRUE(record.vanished.empty());
  EXPECT_TRUE(record.idle_waivers.empty());
}

TEST(Baseline, TakesARemarkWithBars) {
  report::RunRecord record = record_of("grpo|sum|x|finite_backward|cause|loss", "rare");
  record.findings[0].detail = "keep = mask | labels != -100 | x";
  const auto known = parse_baseline(baseline_text(record), "baseline.txt");
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].fingerprint, "grpo|sum|x|finite_backward|cause|loss");
}

TEST(Waivers, SayWhatNothingNeedsAnyMore) {
  const auto waiver = [](const std::string& pattern) {
    return Waiver{.pattern = pattern, .reason = "r", .issue = "i", .expires = "2026-12-31"};
  };
  const Policy policy{.waivers = {waiver("grpo|*"), waiver("grpo|*|x|*|cause|per_token"),
                                  waiver("grpo|sum|y|*"), waiver("jsd|*")},
                      .baseline = {},
                      .today = "2026-01-01"};
  report::RunRecord record = asked_of_x();
  record.findings = record_of("grpo|sum|x|finite_backward|cause|loss", "rare").findings;
  judge(record, policy);
  EXPECT_EQ(record.idle_waivers, std::vector<std::string>{"grpo|*|x|*|cause|per_token"});
  record.idle_waivers.clear();
  record.interrupted = true;
  judge(record, policy);
  EXPECT_TRUE(record.idle_waivers.empty());
}

TEST(Pattern, StarStandsForAnyCharacters) {
  EXPECT_TRUE(matches("a*c", "abbc"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a|b|b|c"));
  EXPECT_FALSE(matches("a*c", "ab"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_FALSE(matches("", "a"));
}

}  // namespace
}  // namespace lossgate::ci
