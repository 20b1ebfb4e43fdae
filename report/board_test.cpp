// SPDX-License-Identifier: Apache-2.0
#include "report/board.h"

#include <gtest/gtest.h>

#include "report/given_record.h"
#include "report/page/parts.h"
#include "report/record_file.h"
#include "report/summary.h"

namespace lossgate::report {
namespace {

/// Findings of two implementations, in the order of a record: by implementation and property.
RunRecord record_of_two() {
  RunRecord record = record_of();
  record.findings.clear();
  for (const char* implementation : {"one", "two"}) {
    for (const char* property : {"finite_forward", "finite_backward"}) {
      for (const char* fingerprint : {"a", "b"}) {
        RecordedFinding& finding = record.findings.emplace_back(finding_of(fingerprint, "rare", 0));
        finding.implementation = implementation;
        finding.property = property;
      }
    }
  }
  return record;
}

/// Where the board first says that the implementation violates the property.
std::size_t at(const std::string& text, const std::string& property, const char* implementation) {
  return text.find(property + " VIOLATED by " + implementation);
}

TEST(Board, ShowsEveryImplementationBeforeASecondFindingOfAny) {
  const std::string text = board(record_of_two(), {.findings = 2, .folder = {}});
  EXPECT_LT(at(text, "finite_forward", "one"), at(text, "finite_forward", "two")) << text;
  EXPECT_NE(at(text, "finite_forward", "two"), text.npos) << text;
  EXPECT_EQ(at(text, "finite_backward", "one"), text.npos) << text;
}

TEST(Board, ShowsEveryPropertyOfAnImplementationBeforeASecondFindingOfOne) {
  const std::string text = board(record_of_two(), {.findings = 4, .folder = {}});
  EXPECT_LT(at(text, "finite_forward", "two"), at(text, "finite_backward", "one")) << text;
  EXPECT_NE(at(text, "finite_backward", "two"), text.npos) << text;
}

TEST(Board, ShowsWhatIsRedFirst) {
  RunRecord record = record_of_two();
  for (RecordedFinding& f : record.findings) {
    if (f.implementation == "one") f.state = "tolerated";
  }
  const std::string text = board(record, {.findings = 5, .folder = {}});
  EXPECT_LT(text.rfind("VIOLATED by two"), at(text, "finite_forward", "one")) << text;
}

TEST(Board, CountsWhatItDoesNotShowByImplementation) {
  EXPECT_NE(board(record_of_two(), {.findings = 3, .folder = {}})
                .find("\n... and 5 more in run.json: grpo/one 2, grpo/two 3\n"),
            std::string::npos);
  EXPECT_EQ(board(record_of_two(), {}).find("more in run.json"), std::string::npos);
}

TEST(Board, HasALineOfEachImplementationThatIsNotShownInFull) {
  RunRecord record = record_of_two();
  for (const char* implementation : {"one", "two"}) {
    record.findings.push_back(finding_of("c", "rare", 0));
    record.findings.back().implementation = implementation + std::string("_too");
  }
  record.findings.back().case_file = "";
  const std::string text = board(record, {.findings = 1, .folder = "out"});
  const auto line_of = [](const std::string& name, const std::string& property) {
    return "\n" + property + " VIOLATED by " + name + " (grpo, f32; unbounded exponent)";
  };
  const std::string file = ": out/findings/0123456789abcdef.case";
  const std::string lines = line_of("two", "finite_forward") + file +
                            line_of("one_too", "finite_backward") + file +
                            line_of("two_too", "finite_backward");
  const std::string left = "... and 6 more in run.json: grpo/one 3, grpo/two 3\n";
  EXPECT_NE(text.find("\n" + lines + "\n\n" + left), std::string::npos) << text;
}

TEST(Board, SaysOfHowMuchNoVerdictCame) {
  RunRecord record = record_of();  // with one question that held and one that was violated
  tally(record.cells[0], properties::skipped("unsupported: two rows\nat a time"), 3);
  EXPECT_EQ(board(record, {}).find("not judged"), std::string::npos) << "it is one in three";
  tally(record.cells[0], properties::vacuous("no digit"), 4);
  const std::string open = "2 of 4 questions (1 not computed: two rows; 1 no digit)";
  EXPECT_NE(board(record, {}).find("\n  one: not judged: " + open + "\n"), std::string::npos)
      << board(record, {});
  EXPECT_NE(board_part(record).find(", not judged: " + open), std::string::npos);
  PageSource source;
  source.runs.push_back({"run", record});
  EXPECT_NE(summary(source).find("\n- one: not judged: "), std::string::npos);
}

TEST(Board, NamesTheShareOfACampaignAndWhatItLeavesToOthers) {
  RunRecord record = record_of();
  record.request.brought = {"grpo/one", "jsd/other"};
  EXPECT_EQ(board(record, {}).find("shard"), std::string::npos);
  record.request.shard = "2/2";
  const std::string text = board(record, {});
  EXPECT_NE(text.find("  shard 2/2  "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  jsd/other: asked by another shard\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("grpo/one: asked"), std::string::npos) << text;
  EXPECT_EQ(from_json(to_json(record), "run.json").request.brought, record.request.brought);
}

TEST(Board, SaysHowManyOfTheViolationsFindingsCount) {
  RunRecord record = record_of();
  EXPECT_EQ(board(record, {}).find("examined"), std::string::npos);
  for (int i = 3; i < 5; ++i) tally(record.cells[0], properties::violated({}), i);
  const std::string some = "examined 1 of 3 violations: findings count those";
  EXPECT_NE(board(record, {}).find("\n  one: " + some + "\n"), std::string::npos);
  EXPECT_NE(board_part(record).find(", " + some), std::string::npos);
  PageSource source;
  source.runs.push_back({"run", record});
  EXPECT_NE(summary(source).find("\n- one: " + some + "\n"), std::string::npos);
}

TEST(Board, HasNoWorstRatioOfWhatNeverAnswered) {
  RunRecord record = record_of();
  const std::string none(12, ' ');
  EXPECT_EQ(board(record, {}).find(none + "-"), std::string::npos);
  for (Cell& each : record.cells) {
    each.verdicts = {};
    each.worst_ratio = 0.0;
  }
  tally(record.cells.at(0), properties::violated({}), 3);
  EXPECT_NE(board(record, {}).find(none + "-"), std::string::npos) << board(record, {});
}

TEST(Board, NamesThePropertiesOfWhichNothingIsJudged) {
  RunRecord record = record_of();
  record.properties.push_back({"reference_agreement", "core", "It is the formula."});
  for (int i = 0; i < 9; ++i) tally(record.cells[0], properties::held(), i);
  Cell& row = cell(record, "grpo", "one", "f32", "reference_agreement");
  tally(row, properties::vacuous("no digit"), 3);
  EXPECT_NE(board(record, {})
                .find("one: not judged: 1 of 12 questions (1 no digit); none judged of "
                      "reference_agreement\n"),
            std::string::npos)
      << board(record, {});
  tally(row, properties::held(), 4);
  EXPECT_EQ(board(record, {}).find("not judged"), std::string::npos);
}

}  // namespace
}  // namespace lossgate::report
