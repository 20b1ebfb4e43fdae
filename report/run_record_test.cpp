// SPDX-License-Identifier: Apache-2.0
#include "report/run_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "report/board.h"
#include "report/finding_text.h"
#include "report/given_record.h"
#include "report/junit.h"
#include "report/record_file.h"

namespace lossgate::report {
namespace {

TEST(RunRecord, CountsVerdictsWithTheirReasons) {
  const RunRecord record = record_of();
  const Cell& row = record.cells.at(0);
  EXPECT_EQ(row.cases, 3);
  EXPECT_EQ(row.verdicts, (std::array<std::int64_t, 5>{1, 1, 1, 0, 0}));
  EXPECT_EQ(row.reasons.at("vacuous: no trigger"), 1);
  EXPECT_EQ(row.worst_ratio, INFINITY);
  EXPECT_EQ(row.worst_ordinal, 2);
}

TEST(RunRecord, IsTheSameInWhateverOrderPartsCome) {
  RunRecord a, b;
  a.findings = {finding_of("f", "adversarial", 1)};
  b.findings = {finding_of("f", "rare", 5)};
  const auto row = [](RunRecord& record, double ratio, std::int64_t ordinal) {
    properties::Outcome outcome;
    outcome.compared = 1;
    outcome.worst_ratio = ratio;
    tally(cell(record, "grpo", "one", "f32", "p"), outcome, ordinal);
  };
  row(a, 0.5, 7);
  row(b, 0.5, 3);
  RunRecord ab, ba;
  merge(ab, a);
  merge(ab, b);
  merge(ba, b);
  merge(ba, a);
  EXPECT_EQ(to_json(ab), to_json(ba));
  ASSERT_EQ(ab.findings.size(), 1U);
  EXPECT_EQ(ab.findings[0].count, 2);
  EXPECT_EQ(ab.findings[0].grade, "rare") << "the plainest case is kept, not the first";
  EXPECT_EQ(ab.cells[0].worst_ordinal, 3);
}

TEST(RecordFile, ReadsBackWhatItWrote) {
  RunRecord record = record_of();
  record.request.seed = UINT64_MAX;
  record.findings[0].allowed = NAN;
  const std::string text = to_json(record);
  EXPECT_EQ(to_json(from_json(text, "run.json")), text);
  EXPECT_EQ(to_json(from_json(to_json(record, -1), "run.json")), text);
}

TEST(RunRecord, CountsHowCloseCasesCameToTheirBounds) {
  RunRecord record;
  for (const double ratio : {0.0, 0.5, 0.25, 0.002, 1.0, 2.0, 2.5, 30.0, std::nan("")}) {
    properties::Outcome outcome;
    outcome.compared = 1;
    outcome.worst_ratio = ratio;
    tally(cell(record, "grpo", "one", "f32", "p"), outcome, 0);
  }
  tally(cell(record, "grpo", "one", "f32", "p"), properties::held(), 1);  // nothing compared
  EXPECT_EQ(
      record.cells[0].ratios,
      (std::map<std::string, std::int64_t>{
          {"0", 1}, {"1e-1", 2}, {"1e-3", 1}, {"1e0", 2}, {"2e0", 1}, {"1e1", 1}, {"inf", 1}}));
}

TEST(RunRecord, CountsHowFarSplitsMoveALossInWhateverOrderPartsCome) {
  const auto part = [](std::vector<double> off_by, const char* worst, std::int64_t ordinal) {
    RunRecord record;
    properties::SplitBias bias{.off_by = std::move(off_by), .worst = worst};
    count_splits(record, "grpo", "one", "f32", bias, ordinal).worst_case = worst;
    return record;
  };
  const RunRecord a = part({0.0, 1e-9, -0.02, -0.05}, "[0] [1] on 1 rank", 7);
  const RunRecord b = part({0.05, 2.5, 0.5}, "[0] [] [1] on 2 ranks", 9);
  const RunRecord c = part({-2.5}, "[1] [0] on 1 rank", 8);
  RunRecord abc, cba;
  for (const RunRecord* next : {&a, &b, &c}) merge(abc, *next);
  for (const RunRecord* next : {&c, &b, &a}) merge(cba, *next);
  EXPECT_EQ(to_json(abc), to_json(cba));
  ASSERT_EQ(abc.splits.size(), 1U);
  EXPECT_EQ(abc.splits[0].off_by,
            (std::map<std::string, std::int64_t>{
                {"0", 2}, {"-1e-2", 2}, {"+1e-2", 1}, {"+1e0", 1}, {"+1e-1", 1}, {"-1e0", 1}}));
  EXPECT_EQ(abc.splits[0].worst, -2.5) << "of two as far off, the case that was asked first";
  EXPECT_EQ(abc.splits[0].worst_case, "[1] [0] on 1 rank");
}

TEST(RunRecord, CountsCoverageOverItsParts) {
  RunRecord a, b;
  cover(a, "grpo", "masked: NaN", true);
  cover(b, "grpo", "masked: NaN", true);
  cover(b, "grpo", "upstream: 0", false);
  merge(a, b);
  ASSERT_EQ(a.coverage.size(), 2U);
  EXPECT_EQ(a.coverage[0].cases, 2);
  EXPECT_EQ(a.coverage[1].cases, 0);
}

TEST(RecordFile, ReadsRecordsThatLackWhatWasAddedLater) {
  RunRecord record = record_of();
  record.request.causes = false;
  record.findings[0].ulp_error = 2.0;
  record.findings[0].outputs = {{"gradient.log_prob", {1}, {NAN}}};
  record.splits.emplace_back().off_by = {{"-1e-1", 3}};
  record.campaign = {{.seconds = 1.5, .cases = 10, .features = 3, .findings = 1}};
  std::string text = to_json(record);
  EXPECT_EQ(to_json(from_json(text, "run.json")), text);
  for (const char* key : {"ratios", "ulp_error", "allclose", "outputs", "coverage", "splits",
                          "campaign", "options", "causes", "no_experiment"}) {
    const std::string quoted = "\"" + std::string(key) + "\"";
    ASSERT_NE(text.find(quoted), std::string::npos) << key;
    text.replace(text.find(quoted), quoted.size(), "\"other_" + std::string(key) + "\"");
  }
  const RunRecord old = from_json(text, "run.json");
  EXPECT_EQ(old.findings[0].ulp_error, 0.0);
  EXPECT_TRUE(old.findings[0].outputs.empty() && old.cells[0].ratios.empty());
  EXPECT_TRUE(old.splits.empty() && old.campaign.empty() && old.findings[0].options.empty());
  EXPECT_TRUE(old.request.causes) << "every finding was looked into then";
}

TEST(RecordFile, RefusesAnotherSchema) {
  RunRecord record = record_of();
  record.schema = kSchemaVersion + 1;
  try {
    from_json(to_json(record), "run.json");
    FAIL();
  } catch (const RecordError& error) {
    EXPECT_STREQ(error.what(), "run.json: schema: expected version 1, not 2");
  }
}

TEST(RecordFile, NamesTheKeyThatIsWrong) {
  const std::string text = to_json(record_of());
  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string altered = text;
    altered.replace(altered.find(from), from.size(), to);
    try {
      from_json(altered, "run.json");
    } catch (const RecordError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(error_of("\"cases_run\"", "\"cases_ran\""), "run.json: cases_run: expected this key");
  EXPECT_EQ(error_of("\"cases_run\": 3", "\"cases_run\": \"3\""),
            "run.json: cases_run: expected an integer");
  EXPECT_EQ(error_of("\"cases_run\": 3", "\"cases_run\": 9223372036854775807"),
            "run.json: cases_run: expected an integer below 2^48");
  EXPECT_EQ(error_of("\"held\": 1", "\"held\": true"),
            "run.json: cells[0].verdicts.held: expected an integer");
  EXPECT_EQ(error_of("{", "["),
            "run.json: line 2, column 10: expected JSON, as the gate writes it");
}

TEST(RecordFile, RefusesANumberThatNoDoubleHolds) {
  std::string text = to_json(record_of());
  text.replace(text.find("\"seconds\": 0.0"), 14, "\"seconds\": 1e999");
  EXPECT_THROW(from_json(text, "run.json"), RecordError);
}

TEST(RecordFile, SaysWhereARecordWasCut) {
  RunRecord record = record_of();
  record.splits.emplace_back().off_by = {{"-1e-1", 3}};
  record.campaign = {{.seconds = 1.5, .cases = 10, .features = 3, .findings = 1}};
  const std::string text = to_json(record);
  for (std::size_t length = 0; length < text.size() - 2;
       ++length) {  // the brace and the line's end
    const std::string_view cut = std::string_view(text).substr(0, length);
    try {
      from_json(cut, "run.json");
      ADD_FAILURE() << "read " << length << " bytes as a record";
    } catch (const RecordError& error) {
      const auto line = std::ranges::count(cut, '\n') + 1;
      EXPECT_TRUE(std::string(error.what())
                      .starts_with("run.json: line " + std::to_string(line) + ", column "))
          << error.what() << " at " << length;
      EXPECT_NE(std::string(error.what()).find("it was cut"), std::string::npos) << length;
    }
  }
}

TEST(FindingText, FitsIntoATerminalHoweverLongItsTextsAre) {
  RecordedFinding finding = finding_of("f", "rare", 0);
  finding.detail = "two\nlines";
  for (int i = 0; i < 1000; ++i) finding.detail += " and more";
  finding.state = "expired waiver";
  finding.state_reason = "it was thought to be harmless";
  const std::string text = finding_text(finding, "Gradients are finite.", "run");
  EXPECT_LE(std::ranges::count(text, '\n'), 20);
  EXPECT_NE(text.find("lossgate replay run/findings/0123456789abcdef.case --impl one --property "
                      "finite_backward\n"),
            std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110U);
}

TEST(ExitStatus, IsRedBeforeItIsIncompleteAndGreenOnlyWhenWhole) {
  RunRecord record = record_of();
  EXPECT_EQ(exit_status(record), 1);
  record.findings[0].state = "known";
  EXPECT_EQ(exit_status(record), 0);
  record.cases_run = 2;
  EXPECT_EQ(exit_status(record), 3);
  record.cases_run = 3;
  record.kills.emplace_back();
  EXPECT_EQ(exit_status(record), 1);
  record.kills[0].killed = true;
  record.expectations.emplace_back();
  EXPECT_EQ(exit_status(record), 1);
}

RunRecord relaxed_record() {
  RunRecord record = record_of();
  tally(record.cells[0], properties::skipped("contract"), 3);
  tally(record.cells[0], properties::skipped("not finite"), 4);
  for (const char* implementation : {"one", "another"}) {
    Cell& empty = cell(record, "grpo", implementation, "f32", "empty_is_zero");
    tally(empty, properties::skipped("contract"), 0);
    tally(empty, properties::skipped(kOutsideContract), 1);
  }
  count_relaxed(record);
  return record;
}

TEST(RunRecord, CountsWhatAContractLeavesOut) {
  RunRecord record = record_of();
  count_relaxed(record);
  EXPECT_EQ(record.subjects[0].relaxed_by_contract, 0);
  EXPECT_TRUE(record.subjects[0].never_asked.empty());
  record = relaxed_record();
  EXPECT_EQ(record.subjects[0].relaxed_by_contract, 3);
  EXPECT_EQ(record.subjects[0].never_asked, std::vector<std::string>{"empty_is_zero"});
  EXPECT_NE(to_json(record).find("\"relaxed_by_contract\": 3"), std::string::npos);
}

TEST(RunRecord, KnowsWhatWasNotAskedAsItIsRedAlready) {
  EXPECT_TRUE(is_red_already("not finite"));
  EXPECT_TRUE(is_red_already("disagrees with the formula already"));
  EXPECT_FALSE(is_red_already("contract"));
}

TEST(RunRecord, SaysWhyAPropertyWasNeverAsked) {
  RunRecord record = relaxed_record();
  const auto add = [&](const char* property, const properties::Outcome& outcome) {
    tally(cell(record, "grpo", "one", "f32", property), outcome, 5);
  };
  add("split_invariance", properties::skipped("contract: micro_batches"));
  add("error_on_invalid", properties::skipped("contract: refuses_invalid"));
  add("padding_invariance", properties::skipped("disagrees with the formula already"));
  add("padding_invariance", properties::skipped("not finite"));
  add("determinism", properties::skipped("not finite"));
  add("determinism", properties::held());
  count_relaxed(record);
  EXPECT_EQ(record.subjects[0].relaxed_by_contract, 4) << "no caller is promised a refusal";
  EXPECT_EQ(record.subjects[0].never_asked,
            (std::vector<std::string>{"empty_is_zero", "split_invariance", "padding_invariance"}));
  EXPECT_EQ(never_asked_text(record, record.subjects[0]),
            "empty_is_zero, split_invariance (micro_batches = \"none\"), padding_invariance (red "
            "already)");
}

TEST(RunRecord, CountsNoPropertyAsIdleThatTheLossHasNoPartIn) {
  RunRecord record = relaxed_record();
  for (const char* property : {"bounds_hold", "path_parity"}) {
    tally(cell(record, "grpo", "one", "f32", property), properties::vacuous("does not apply"), 5);
  }
  count_relaxed(record);
  EXPECT_TRUE(record.subjects[0].never_triggered.empty());
}

TEST(RunRecord, NamesThePropertiesThatNothingTriggered) {
  RunRecord record = relaxed_record();
  const auto add = [&](const char* property, const properties::Outcome& outcome) {
    tally(cell(record, "grpo", "one", "f32", property), outcome, 5);
  };
  for (const char* property : {"bounds_hold", "path_parity", "determinism"}) {
    add(property, properties::vacuous("no trigger"));
  }
  add("bounds_hold", properties::skipped("disagrees with the formula already"));
  add("determinism", properties::held());
  add("on_policy_identity", properties::vacuous("no digit"));
  count_relaxed(record);
  EXPECT_EQ(record.subjects[0].never_triggered,
            (std::vector<std::string>{"bounds_hold", "path_parity"}));
  EXPECT_NE(board(record, {})
                .find("never asked: empty_is_zero; never triggered: bounds_hold, "
                      "path_parity\n"),
            std::string::npos);
}

TEST(Board, SaysWhatAContractLeavesOut) {
  EXPECT_EQ(board(record_of(), {}).find("relaxed"), std::string::npos);
  EXPECT_NE(board(relaxed_record(), {})
                .find("\n  one: relaxed by contract: 3; never asked: empty_is_zero\n"),
            std::string::npos);
}

TEST(Board, SaysWhichParametersAreNeverTold) {
  RunRecord record = record_of();
  const std::string told = "temperature other than 1, a parameter whose own default is 2";
  EXPECT_EQ(board(record, {}).find("never asked"), std::string::npos);
  record.subjects[0].never_told = {told};
  EXPECT_NE(board(record, {}).find("\n  one: never asked: " + told + "\n"), std::string::npos);
  EXPECT_EQ(from_json(to_json(record), "run.json").subjects[0].never_told, std::vector{told});
}

TEST(RunRecord, KeepsAtWhatOptionsStandThatNobodySays) {
  RunRecord record = record_of();
  record.subjects[0].taken_as = {"kl_output_clamp 10"};
  EXPECT_EQ(from_json(to_json(record), "run.json").subjects[0].taken_as,
            std::vector<std::string>{"kl_output_clamp 10"});
}

TEST(Board, SaysWhatIsNotedAndNoFinding) {
  RunRecord record = record_of();
  EXPECT_EQ(board(record, {}).find("no finding"), std::string::npos);
  for (const char* property : {"finite_forward", "reference_agreement"}) {
    tally(cell(record, "grpo", "one", "f32", property), properties::note("advisory: inf"), 5);
  }
  const std::string text = board(record, {});
  EXPECT_NE(text.find("\n  one: its own f64 does not bear out, which is no finding: "
                      "finite_forward (1), reference_agreement (1)\n"),
            std::string::npos)
      << text;
}

TEST(Board, CountsWhatLongCasesAloneShowByItself) {
  RunRecord record = record_of();
  record.kills.push_back({.loss = "grpo",
                          .implementation = "dead_clamp",
                          .property = "reference_agreement",
                          .killed = true,
                          .hostile_cases = 2,
                          .dtype = "f32",
                          .case_id = "1",
                          .long_axis = "",
                          .trouble = ""});
  const std::string all = "killed 1 of 1, 1 (100.0 %) within the first 8 hostile cases";
  EXPECT_NE(board(record, {}).find(all + "\n"), std::string::npos) << board(record, {});
  record.kills.push_back(record.kills.back());
  record.kills.back().hostile_cases = 302;
  record.kills.back().long_axis = "tokens";
  const std::string text = board(record, {});
  EXPECT_NE(
      text.find("killed 2 of 2, 1 (100.0 %) within the first 8 hostile cases, 1 by long cases "
                "alone\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("long tokens (f32)\n"), std::string::npos) << text;
}

TEST(Board, IsPlainWithoutColour) {
  const std::string plain = board(record_of(), {});
  EXPECT_TRUE(std::ranges::all_of(plain, [](char c) { return c == '\n' || (c >= 32 && c < 127); }));
  EXPECT_NE(board(record_of(), {.colour = true, .folder = {}}).find('\x1b'), std::string::npos);
  EXPECT_NE(plain.find("red: 1 red finding\n"), std::string::npos) << plain;
}

TEST(Junit, EscapesWhatXmlCannotHold) {
  const std::string xml = junit(record_of());
  EXPECT_NE(xml.find("it is &lt;not&gt; &quot;finite&quot; &amp;"), std::string::npos);
  EXPECT_EQ(xml.find('\x01'), std::string::npos);
  EXPECT_NE(xml.find("failures=\"1\""), std::string::npos);
}

}  // namespace
}  // namespace lossgate::report
