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

TEST(Fault, HasTheNameOfTheFindingThatExperimentsExplainMost) {
  std::vector<RecordedFinding> findings = {shown("a", "sentinel compared", {"x"}),
                                           shown("b", "sentinel compared", {"y"}),
                                           shown("c", "sentinel compared", {"z"})};
  for (RecordedFinding& finding : findings) finding.confidence = 0.95;
  findings[1].count = findings[2].count = 12;
  EXPECT_EQ(faults_of(findings), (Names{"b", "b", "b"}));
  findings[1].confidence = 0.5;
  EXPECT_EQ(faults_of(findings), (Names{"c", "c", "c"}));
}

TEST(Fault, IsOneWhereNumbersBeginToFailAtOneLine) {
  std::vector<RecordedFinding> findings = {shown("a", kSeen, {"x"}), shown("b", kSeen, {"y"}),
                                           shown("c", kSeen, {"z"}), shown("d", kSeen, {"v"})};
  for (RecordedFinding& finding : findings) {
    finding.source_line = finding.fingerprint == "c" ? 6 : 5;
    if (finding.fingerprint != "d") finding.source_text = "exp(100 (sub)) = inf";
  }
  EXPECT_EQ(faults_of(findings), (Names{"a", "a", "c", "d"}))
      << "where a function begins says less";
}

/// The same, with an experiment that is so sure of the cause, in a format.
RecordedFinding explained(const std::string& name, const std::string& cause, double confidence,
                          const std::string& dtype = "f32") {
  RecordedFinding finding = shown(name, cause, {name});
  finding.confidence = confidence;
  finding.dtype = dtype;
  return finding;
}

std::int64_t least_of(std::vector<RecordedFinding> findings) {
  RunRecord record;
  record.findings = std::move(findings);
  group_by_fault(record);
  return least_faults(record);
}

TEST(LeastFaults, AreThoseThatExperimentsAreSureOf) {
  EXPECT_EQ(least_of({}), 0);
  EXPECT_EQ(least_of({shown("a", kSeen, {"x"}), shown("b", kSeen, {"y"})}), 1);
  EXPECT_EQ(least_of({explained("a", "dead clamp", 0.95), explained("b", "mean of means", 0.9)}),
            2);
  EXPECT_EQ(least_of({explained("a", "dead clamp", 0.95), explained("b", "mean of means", 0.7),
                      shown("c", kSeen, {"y"})}),
            1)
      << "the others may be the same";
}

TEST(LeastFaults, AreCountedInOneFormat) {
  EXPECT_EQ(least_of({explained("a", "narrow arithmetic", 0.9, "f16"),
                      explained("b", "cancellation", 0.95, "f32")}),
            1);
  EXPECT_EQ(least_of({explained("a", "narrow arithmetic", 0.9, "f16"),
                      explained("b", "cancellation", 0.95, "f32"),
                      explained("c", "dead clamp", 0.95, "f32")}),
            2);
}

TEST(LeastFaults, AreOneOfEachImplementationThatHasARedFinding) {
  RecordedFinding other = shown("b", kSeen, {"x"}), tolerated = shown("c", kSeen, {"x"});
  other.implementation = "two";
  tolerated.implementation = "three";
  tolerated.state = "tolerated";
  EXPECT_EQ(least_of({shown("a", kSeen, {"x"}), other, tolerated}), 2);
}

TEST(Fault, IsOfOneImplementation) {
  RecordedFinding other = shown("b", "dead clamp", {"x"});
  other.implementation = "two";
  EXPECT_EQ(faults_of({shown("a", "dead clamp", {"x"}), other}), (Names{"a", "b"}));
}

}  // namespace
}  // namespace lossgate::report
