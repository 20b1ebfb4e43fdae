// SPDX-License-Identifier: Apache-2.0
#include "report/board.h"

#include <gtest/gtest.h>

#include "report/given_record.h"

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

}  // namespace
}  // namespace lossgate::report
