// SPDX-License-Identifier: Apache-2.0
#include "ci/campaign_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "ci/errors.h"
#include "ci/journal.h"
#include "corpora/files.h"
#include "corpora/given_folder.h"
#include "corpora/text_codec.h"
#include "fuzz/draw_case.h"
#include "reference/reference.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

Case some_case() {
  fuzz::Choices choices(1);
  return draw_case(*reference::find_signature("grpo"), Dtype::f32, fuzz::Profile::hostile, choices);
}

report::RunRecord a_finding(const std::string& fingerprint) {
  report::RunRecord record;
  report::RecordedFinding& finding = record.findings.emplace_back();
  finding.fingerprint = fingerprint;
  finding.grade = "rare";
  finding.case_file = "findings/0123456789abcdef.case";
  finding.case_text = "the text\n";
  return record;
}

TEST(CampaignFolder, RemembersWhatItWasTold) {
  const GivenFolder scratch;
  {
    CampaignFolder folder(scratch.path());
    EXPECT_FALSE(folder.history().begun);
    folder.keep(some_case(), *reference::find_signature("grpo"), "grpo/host", {3, 65535});
    folder.spent("grpo/host", 100, 1.5);
    folder.spent("grpo/host", 50, 0.5);
    folder.elapsed(2.0, 300);
    folder.asked_long("grpo/host", 4);
    folder.asked_long("grpo/host", 5);
    folder.asked_long("grpo/torch", -1);
    folder.found(a_finding("a|b"));
    EXPECT_EQ(folder.waiting(), 0u);
  }
  const CampaignFolder folder(scratch.path());
  const History& history = folder.history();
  EXPECT_TRUE(history.begun);
  EXPECT_EQ(history.damaged, 0);
  EXPECT_EQ(history.seconds, 2.0);
  EXPECT_EQ(history.spent.at("grpo/host").cases, 150);
  EXPECT_EQ(history.spent.at("grpo/host").seen, (std::set<fuzz::Feature>{3, 65535}));
  EXPECT_EQ(history.spent.at("grpo/host").long_from, 5);
  EXPECT_EQ(history.spent.at("grpo/torch").long_from, -1);
  ASSERT_EQ(history.findings.findings.size(), 1u);
  EXPECT_EQ(history.findings.findings[0].fingerprint, "a|b");
  EXPECT_EQ(folder.corpus_of("grpo", 1).size(), 1u);
  EXPECT_TRUE(fs::exists(scratch.path() / "findings/0123456789abcdef.case"));
}

TEST(CampaignFolder, KeepsTheSeedWithWhichItBegan) {
  const GivenFolder scratch;
  const std::uint64_t seed = 18446744073709551615U;
  CampaignFolder(scratch.path() / "one", seed);
  EXPECT_EQ(CampaignFolder(scratch.path() / "one", 2).history().seed, seed);
  CampaignFolder(scratch.path() / "other");
  EXPECT_FALSE(CampaignFolder(scratch.path() / "other", 2).history().seed);
}

TEST(CampaignFolder, RemembersWhatIsMendedUntilItIsFoundAgain) {
  const GivenFolder scratch;
  {
    CampaignFolder folder(scratch.path());
    folder.found(a_finding("a|b"));
    report::RecordedFinding other = a_finding("c|d").findings[0];
    folder.found_again("none", other);
    folder.mended({.fingerprint = "a|b",
                   .loss = "grpo",
                   .implementation = "host",
                   .property = "determinism",
                   .case_file = "findings/0123456789abcdef.case",
                   .reason = "held"});
    EXPECT_EQ(folder.history().findings.findings.size(), 1u);
    EXPECT_EQ(folder.history().findings.mended.size(), 1u);
  }
  EXPECT_TRUE(fs::exists(scratch.path() / "corpus/grpo/0123456789abcdef.case"));
  CampaignFolder folder(scratch.path());
  ASSERT_EQ(folder.history().findings.findings.size(), 1u);
  EXPECT_EQ(folder.history().findings.findings[0].fingerprint, "c|d");
  ASSERT_EQ(folder.history().findings.mended.size(), 1u);
  EXPECT_EQ(folder.history().findings.mended[0].reason, "held");
  folder.found(a_finding("a|b"));
  const History history = read_history(scratch.path() / "journal");
  EXPECT_EQ(history.findings.findings.size(), 2u);
  EXPECT_TRUE(history.findings.mended.empty());
}

TEST(CampaignFolder, TakesWhatIsFoundNowForWhatWasFoundBefore) {
  const GivenFolder scratch;
  {
    CampaignFolder folder(scratch.path());
    folder.found(a_finding("a|b"));
    report::RecordedFinding now = a_finding("a|b").findings[0];
    now.source_line = 7;
    now.grade = "adversarial";  // rarer, and yet what is so now
    folder.found_again("a|b", now);
  }
  const History history = read_history(scratch.path() / "journal");
  ASSERT_EQ(history.findings.findings.size(), 1u);
  EXPECT_EQ(history.findings.findings[0].source_line, 7);
}

TEST(CampaignFolder, TellsInOneFileOfTheFindingsOnOneCase) {
  const GivenFolder scratch;
  const LossSignature& signature = *reference::find_signature("grpo");
  Case c = some_case();
  const auto finding_of = [&](const std::string& story) {
    c.provenance.story = story;
    report::RunRecord record = a_finding(story);
    record.findings[0].case_text = corpora::encode(c, signature);
    return record;
  };
  report::RunRecord two = finding_of("determinism violated by one");
  merge(two, finding_of("determinism violated by other"));
  CampaignFolder folder(scratch.path());
  folder.found(two);
  folder.found(finding_of("finite_forward violated by one"));
  folder.found(finding_of("determinism violated by one"));
  const Case stored = corpora::read_case_file(scratch.path() / two.findings[0].case_file,
                                              reference::find_signature);
  EXPECT_EQ(
      stored.provenance.story,
      "determinism violated by one\ndeterminism violated by other\nfinite_forward violated by "
      "one");
  EXPECT_EQ(corpora::case_id(stored), corpora::case_id(c));
}

/// The disk is full as long as this lives: no file may grow.
class FullDisk {
 public:
  FullDisk() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = nullptr;
};

TEST(CampaignFolder, AddsUpTheTimeInWhichTheDiskWasFull) {
  const GivenFolder scratch;
  {
    CampaignFolder folder(scratch.path());
    {
      const FullDisk full;
      for (int i = 0; i < 20'000; ++i) {
        folder.spent("grpo/host", 2, 0.5);
        folder.elapsed(0.25, 300);
      }
      EXPECT_LE(folder.waiting(), 2u);
      folder.found(a_finding("a|b"));
    }
    EXPECT_TRUE(folder.flush());
    EXPECT_EQ(folder.lost(), 0);
  }
  const CampaignFolder folder(scratch.path());
  EXPECT_EQ(folder.history().spent.at("grpo/host").cases, 40'000);
  EXPECT_EQ(folder.history().seconds, 5'000.0);
  EXPECT_EQ(folder.history().findings.findings.size(), 1u);
}

TEST(CampaignFolder, CountsWhatItCouldNotKeep) {
  const GivenFolder scratch;
  CampaignFolder folder(scratch.path());
  const FullDisk full;
  for (int i = 0; i < 10'050; ++i) folder.found(a_finding("a|b"));
  EXPECT_EQ(folder.lost(), 50);
}

TEST(CampaignFolder, TellsHowFarItWasWheneverTheClockWasRead) {
  const GivenFolder scratch;
  {
    CampaignFolder folder(scratch.path());
    folder.keep(some_case(), *reference::find_signature("grpo"), "grpo/host", {3, 65535});
    folder.spent("grpo/host", 100, 1.5);
    folder.elapsed(2.0, 300);
    folder.keep(some_case(), *reference::find_signature("grpo"), "grpo/host", {3, 4});
    folder.spent("grpo/torch", 50, 0.5);
    folder.found(a_finding("a|b"));
    folder.found(a_finding("a|b"));
    folder.elapsed(1.0, 310);
  }
  const auto points = read_history(scratch.path() / "journal").points;
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].seconds, 2.0);
  EXPECT_EQ(points[0].cases, 100);
  EXPECT_EQ(points[0].features, 2);
  EXPECT_EQ(points[0].findings, 0);
  EXPECT_EQ(points[1].seconds, 3.0);
  EXPECT_EQ(points[1].cases, 150);
  EXPECT_EQ(points[1].features, 3);
  EXPECT_EQ(points[1].findings, 1);
  EXPECT_EQ(points[0].memory_mib, 300);
  EXPECT_EQ(points[1].memory_mib, 310);
}

TEST(History, TakesANumberThatIsNoCountForDamage) {
  for (const char* line :
       {R"({"spent":{"arm":"grpo/host","cases":7e43,"seconds":1}})",
        R"({"spent":{"arm":"grpo/host","cases":-1,"seconds":1}})",
        R"({"spent":{"arm":"grpo/host","cases":9223372036854775807,"seconds":1}})",
        R"({"kept":{"arm":"grpo/host","case":"","features":[7e43]}})",
        R"({"elapsed":1.5,"memory_mib":1e300})"}) {
    const GivenFolder scratch;
    Journal(scratch.path() / "journal").append(line);
    const History history = read_history(scratch.path() / "journal");
    EXPECT_EQ(history.damaged, 1) << line;
    EXPECT_EQ(history.points.size(), 0u) << line;
    for (const auto& [arm, spent] : history.spent) EXPECT_EQ(spent.cases, 0) << line;
  }
}

TEST(History, DoesNotKnowTheMemoryOfCampaignsThatDidNotSayIt) {
  const GivenFolder scratch;
  Journal(scratch.path() / "journal").append(R"({"elapsed":1.5})");
  const auto points = read_history(scratch.path() / "journal").points;
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].memory_mib, 0);
}

TEST(CampaignFolder, ThinsACurveWithoutLosingItsEnd) {
  std::vector<report::CampaignPoint> points(12'345);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].seconds = static_cast<double>(i);
  const auto some = thinned(points);
  EXPECT_EQ(some.size(), kMostPoints);
  EXPECT_EQ(some.back().seconds, 12'344.0);
  EXPECT_TRUE(std::ranges::is_sorted(some, {}, &report::CampaignPoint::seconds));
  points.resize(7);
  EXPECT_EQ(thinned(points).size(), 7u);
}

TEST(CampaignFolder, GivesAFewOfManyCasesAndOthersForAnotherSeed) {
  const GivenFolder scratch;
  CampaignFolder folder(scratch.path());
  fs::create_directories(scratch.path() / "corpus/grpo");
  for (int i = 0; i < 1000; ++i) {
    std::ofstream(scratch.path() / "corpus/grpo" / (std::to_string(i) + ".case")) << "a case";
  }
  const auto one = folder.corpus_of("grpo", 1), other = folder.corpus_of("grpo", 2);
  EXPECT_EQ(one.size(), 128u);
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), one.size());
  EXPECT_EQ(one, folder.corpus_of("grpo", 1));
  EXPECT_NE(one, other);
  EXPECT_TRUE(folder.corpus_of("jsd", 1).empty());
}

TEST(CampaignFolder, TakesOverWhatIsMended) {
  const GivenFolder scratch;
  const fs::path one = scratch.path() / "one", both = scratch.path() / "both";
  report::RunRecord findings = a_finding("a|b");
  {
    CampaignFolder folder(one);
    folder.found(findings);
  }
  findings.findings.clear();
  findings.mended.push_back({.fingerprint = "a|b",
                             .loss = "grpo",
                             .implementation = "host",
                             .property = "determinism",
                             .case_file = "findings/0123456789abcdef.case",
                             .reason = "held"});
  CampaignFolder folder(both);
  folder.take_over(one, {}, findings);
  EXPECT_TRUE(fs::exists(both / "findings/0123456789abcdef.case"));
  EXPECT_EQ(read_history(both / "journal").findings.mended.size(), 1u);
}

TEST(CampaignFolder, AFindingThatIsOnlyCountedIsNotWritten) {
  const GivenFolder scratch;
  report::RunRecord counted = a_finding("a|b");
  counted.findings[0].case_text.clear();
  CampaignFolder(scratch.path()).found(counted);
  EXPECT_TRUE(CampaignFolder(scratch.path()).history().findings.findings.empty());
}

void write_journal(const GivenFolder& scratch, const std::string& line) {
  Journal(scratch.path() / "journal").append(line);
}

TEST(CampaignFolder, OneOfANewerVersionIsRefusedByItsVersion) {
  const GivenFolder scratch;
  write_journal(scratch, R"({"campaign": {"journal": 2, "version": "9.1.0"}})");
  try {
    CampaignFolder folder(scratch.path());
    FAIL() << "was taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("lossgate 9.1.0"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("version 2, expected 1"), std::string::npos);
  }
}

TEST(CampaignFolder, LinesThatMeanNothingAreCounted) {
  const GivenFolder scratch;
  { CampaignFolder folder(scratch.path()); }
  write_journal(scratch, "no json");
  write_journal(scratch, R"({"spent": {"arm": 7}})");
  write_journal(scratch, R"({"found": {"schema": 99}})");
  write_journal(scratch, R"({"kept": {"arm": "a/b", "features": [70000]}})");
  std::ofstream(scratch.path() / "journal", std::ios::app) << "half a li";
  EXPECT_EQ(CampaignFolder(scratch.path()).history().damaged, 5);
}

TEST(CampaignFolder, TakesOverWhatAnotherHolds) {
  const GivenFolder scratch;
  const fs::path one = scratch.path() / "one", both = scratch.path() / "both";
  {
    CampaignFolder folder(one);
    folder.keep(some_case(), *reference::find_signature("grpo"), "grpo/host", {3});
    folder.spent("grpo/host", 100, 1.5);
    folder.elapsed(2.0, 300);
  }
  {
    CampaignFolder folder(both);
    folder.spent("grpo/host", 10, 1.0);
    folder.take_over(one, read_history(one / "journal"), a_finding("a|b"));
  }
  const CampaignFolder folder(both);
  EXPECT_EQ(folder.history().spent.at("grpo/host").cases, 110);
  EXPECT_EQ(folder.history().spent.at("grpo/host").seen, (std::set<fuzz::Feature>{3}));
  EXPECT_EQ(folder.history().findings.findings.size(), 1u);
  EXPECT_EQ(folder.corpus_of("grpo", 1).size(), 1u);
}

}  // namespace
}  // namespace lossgate::ci
