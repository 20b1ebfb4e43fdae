// SPDX-License-Identifier: Apache-2.0
#include "report/faults.h"

#include <gtest/gtest.h>

#include "report/given_record.h"

namespace lossgate::report {
namespace {

/// A finding of the implementation `one`, called `name`.
RecordedFinding shown(const std::string& name, const std::string& cause,
                      std::vector<std::string> shows) {
  RecordedFinding finding = finding_of(name, "rare", 0);
  finding.cause = cause;
  finding.shows = std::move(shows);
  return finding;
}

std::vector<std::string> faults_of(std::vector<RecordedFinding> findings) {
  RunRecord record;
  record.findings = std::move(findings);
  group_by_fault(record);
  std::vector<std::string> faults;
  for (const RecordedFinding& finding : record.findings) faults.push_back(finding.fault);
  return faults;
}

const std::string kSeen = "disagrees with the formula";
using Names = std::vector<std::string>;

TEST(Fault, IsOneWhereACaseShowsWhatAnotherFindingSaw) {
  EXPECT_EQ(faults_of({shown("a", kSeen, {"x", "y"}), shown("b", kSeen, {"z"}),
                       shown("c", kSeen, {"y"})}),
            (Names{"a", "b", "a"}));
}

TEST(Fault, IsOneWhereExperimentsGiveOneCause) {
  EXPECT_EQ(faults_of({shown("a", "dead clamp", {"x"}), shown("b", "dead clamp", {"y"}),
                       shown("c", "mean of means", {"z"})}),
            (Names{"a", "a", "c"}));
}

TEST(Fault, IsNotOneForWhatNoExperimentExplains) {
  EXPECT_EQ(faults_of({shown("a", kSeen, {"x"}), shown("b", kSeen, {"y"})}), (Names{"a", "b"}));
}

TEST(Fault, JoinsWhatWasTakenForTwo) {
  EXPECT_EQ(faults_of({shown("a", kSeen, {"x"}), shown("b", kSeen, {"y"}), shown("c", kSeen, {"z"}),
                       shown("d", kSeen, {"z", "y"}), shown("e", kSeen, {"y", "x"})}),
            (Names{"a", "a", "a", "a", "a"}));
}

TEST(Fault, IsCalledWhatExperimentsCallMostOfItsCases) {
  std::vector<RecordedFinding> findings = {
      shown("a", kSeen, {"x"}), shown("b", "rank average", {"x"}), shown("c", "dead clamp", {"x"}),
      shown("d", "dead clamp", {"x"})};
  findings[0].count = 50;
  findings[1].confidence = 0.9;
  findings[2].confidence = findings[3].confidence = 0.5;
  EXPECT_EQ(faults_of(findings), (Names{"c", "c", "c", "c"}));
  findings[1].count = 2;
  EXPECT_EQ(faults_of(findings), (Names{"b", "b", "b", "b"}));
}

TEST(Fault, IsOfOneImplementation) {
  RecordedFinding other = shown("b", "dead clamp", {"x"});
  other.implementation = "two";
  EXPECT_EQ(faults_of({shown("a", "dead clamp", {"x"}), other}), (Names{"a", "b"}));
}

}  // namespace
}  // namespace lossgate::report
