// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/given_record.h"
#include "report/junit.h"
#include "report/sarif.h"
#include "report/summary.h"

namespace lossgate::report {
namespace {

using Json = nlohmann::json;

PageSource source_of(RunRecord record) {
  PageSource source;
  source.runs.push_back({"run", std::move(record)});
  return source;
}

TEST(Sarif, HasARuleForEachPropertyAndALineForEachFinding) {
  RunRecord record = record_of(3);
  record.findings[1].state = "known";
  record.findings[2].state = "tolerated";
  const Json run = Json::parse(sarif(record))["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "finite_backward");
  EXPECT_NE(run["tool"]["driver"]["rules"][0]["help"]["text"].get<std::string>().find("Usual fix"),
            std::string::npos);
  ASSERT_EQ(run["results"].size(), 3U);
  const Json& first = run["results"][0];
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["ruleIndex"], 0);
  const Json& place = first["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "impl/one.cpp");
  EXPECT_EQ(place["region"]["startLine"], 100);
  EXPECT_TRUE(run["results"][1].contains("suppressions"));
  EXPECT_EQ(run["results"][2]["level"], "note");
  EXPECT_NE(first["partialFingerprints"], run["results"][1]["partialFingerprints"]);
}

TEST(Sarif, TellsOfAFindingWhatTheTerminalTells) {
  RunRecord record = record_of();
  const auto told = [&] {
    const Json result = Json::parse(sarif(record))["runs"][0]["results"][0];
    EXPECT_EQ(result["properties"]["options"], (Json{"reduction token_mean", "clip_low 0.2"}));
    return result["message"]["text"].get<std::string>();
  };
  record.findings[0].confidence = 0.95;
  std::string text = told();
  for (const char* part : {"; options reduction token_mean, clip_low 0.2. Cause: unbounded ",
                           "exponent. Usual fix: ", ". Replay: lossgate replay findings/"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  record.findings[0].cause = "not finite";
  record.findings[0].confidence = 0.0;
  text = told();
  EXPECT_NE(text.find(". Cause: not finite; no experiment says more. To try: "), std::string::npos)
      << text;
  record.findings[0].no_experiment = "--no-causes";
  text = told();
  EXPECT_NE(text.find("; no experiment was made: --no-causes. To try: "), std::string::npos)
      << text;
}

TEST(Sarif, NamesFilesFromTheFolderOfTheGate) {
  const auto uri_of = [](const std::string& file, const std::string& flags) {
    RunRecord record = record_of();
    record.findings[0].source_file = file;
    record.findings[0].source_flags = flags;
    return Json::parse(sarif(record))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
                                     ["artifactLocation"]["uri"]
                                         .get<std::string>();
  };
  EXPECT_EQ(uri_of("losses.py", "--config lossgate.toml"), "losses.py");
  EXPECT_EQ(uri_of("losses.py", "--config train/lossgate.toml"), "train/losses.py");
  EXPECT_EQ(uri_of("trl/x.py", "--config ../elsewhere/lossgate.toml"), "trl/x.py");
  EXPECT_EQ(uri_of("my losses#1.py", ""), "my%20losses%231.py");
}

TEST(Sarif, IsJsonWhateverTheTexts) {
  for (const std::string& text : hostile_texts()) {
    RunRecord record = record_of();
    fill_with(record, text);
    EXPECT_TRUE(Json::accept(sarif(record)));
  }
}

TEST(Junit, HoldsWhateverTheTexts) {
  for (const std::string& text : hostile_texts()) {
    RunRecord record = record_of();
    fill_with(record, text);
    const std::string xml = junit(record);
    EXPECT_EQ(xml.find('\0'), std::string::npos);
    EXPECT_EQ(xml.find('\x1b'), std::string::npos);
    EXPECT_EQ(xml.find('\xFF'), std::string::npos);
  }
}

TEST(Junit, TellsTheTimeOfTheRunAndOfEachImplementation) {
  RunRecord record = record_of();
  record.seconds = 12.5;
  const Subject& subject = record.subjects.front();
  record.timings = {{subject.loss, subject.name, "f32", 1, 1, 1.25},
                    {subject.loss, subject.name, "bf16", 1, 1, 2.0}};
  const std::string xml = junit(record);
  EXPECT_NE(xml.find(" time=\"12.500\">\n"), std::string::npos);
  EXPECT_NE(xml.find(" time=\"3.250\">\n"), std::string::npos);
}

TEST(Junit, SkipsATestForStoredCasesThatFitNoSubject) {
  RunRecord record = record_of();
  EXPECT_EQ(junit(record).find("stored cases"), std::string::npos);
  record.unfit = {{"kept", "grpo", "clip_low is fixed", 4}};
  const std::string line = "4 stored cases of grpo in kept fit no subject: clip_low is fixed";
  EXPECT_NE(junit(record).find("<skipped message=\"" + line + "\"/>"), std::string::npos);
  EXPECT_NE(summary(source_of(record)).find("4 stored cases of grpo in kept"), std::string::npos);
  record.unfit[0].cases = 1;
  EXPECT_NE(junit(record).find("1 stored case of grpo in kept fits no"), std::string::npos);
}

TEST(Junit, SkipsATestWhoseFindingsAreAllAccepted) {
  RunRecord record = record_of(3);
  for (RecordedFinding& f : record.findings) {
    f.state = "known";
    f.state_reason = "in the baseline";
  }
  record.findings[0].state = "waived";
  record.findings[0].state_reason = "padding (#12, expires 2999-01-01)";
  EXPECT_NE(junit(record).find("<skipped message=\"accepted (known): in the baseline; accepted "
                               "(waived): padding (#12, expires 2999-01-01)\"/>"),
            std::string::npos)
      << junit(record);
  record.findings[2].state = "red";
  EXPECT_EQ(junit(record).find("<skipped"), std::string::npos);
}

TEST(Junit, SkipsATestForEachWaiverAndEntryOfTheBaselineThatNoFindingNeeds) {
  RunRecord record = record_of();
  EXPECT_EQ(junit(record).find("waivers and baseline"), std::string::npos);
  record.vanished = {"gone"};
  record.idle_waivers = {"idle|*"};
  record.misfits = {"odd: no loss is called so"};
  const std::string xml = junit(record);
  EXPECT_NE(xml.find("<testsuite name=\"waivers and baseline\" tests=\"3\" failures=\"0\" "
                     "errors=\"0\" skipped=\"3\" "),
            std::string::npos)
      << xml;
  const auto skips = [&](const std::string& name, const std::string& reason) {
    return xml.find("name=\"" + name + "\">\n      <skipped message=\"" + reason + "\"/>") !=
           std::string::npos;
  };
  EXPECT_TRUE(skips("gone", "vanished from the baseline: gone")) << xml;
  EXPECT_TRUE(skips("idle|*", "waiver that nothing needs any more: idle|*")) << xml;
  EXPECT_TRUE(
      skips("odd: no loss is called so", "fits nothing that exists: odd: no loss is called so"))
      << xml;
  record.baseline_cases = 1080;
  EXPECT_NE(junit(record).find("not met in these 3 cases"), std::string::npos);
}

TEST(Summary, TellsOfAcceptance) {
  RunRecord record = record_of(3);
  EXPECT_EQ(summary(source_of(record)).find("### Accepted"), std::string::npos);
  record.findings[0].state = "expired waiver";
  record.findings[0].state_reason = "padding (12, expires 2020-01-01)";
  record.findings[1].state = "waived";
  record.findings[1].state_reason = "a product (13, expires 2999-01-01)";
  record.findings[1].fingerprint = "f1";
  record.vanished = {"gone"};
  record.idle_waivers = {"idle"};
  record.misfits = {"odd: no loss is called 'odd'"};
  const std::string text = summary(source_of(record));
  for (const char* line : {"\n### Accepted\n", "\n- vanished from the baseline: gone\n",
                           "\n- waiver that nothing needs any more: idle\n",
                           "\n- fits nothing that exists: odd: no loss is called 'odd'\n",
                           "\n- waived: a product (13, expires 2999-01-01): f1\n",
                           "\n- expired: padding (12, expires 2020-01-01)\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Summary, DoesNotTakeForMendedWhatFewerCasesDoNotMeet) {
  RunRecord record = record_of();
  record.vanished = {"gone"};
  record.baseline_cases = 1080;
  const std::string text = summary(source_of(record));
  EXPECT_NE(text.find("\n- not met in these 3 cases (the baseline is of 1,080): gone\n"),
            std::string::npos)
      << text;
  record.baseline_cases = 3;
  EXPECT_NE(summary(source_of(record)).find("vanished from the baseline: gone"), std::string::npos);
}

TEST(Summary, TellsOfAFindingWhatTheTerminalTells) {
  const std::string text = summary(source_of(record_of()));
  for (const char* line : {"\n- inputs: log_prob -1 (0xbf800000)\n",
                           "\n- options: reduction token_mean, clip_low 0.2\n",
                           "\n- reach: fails from log-ratio 88.73 in f32\n", "\n- usual fix: "}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Summary, StaysWithinItsBound) {
  EXPECT_LT(summary(source_of(record_of(10))).size(), 16'000U);
  const std::string text = summary(source_of(record_of(1000)));
  EXPECT_LE(text.size(), kLongestSummary);
  EXPECT_GT(text.size(), kLongestSummary / 2);
  EXPECT_NE(text.find(" more in report.html\n"), std::string::npos);
  for (const std::string& hostile : hostile_texts()) {
    RunRecord record = record_of();
    fill_with(record, hostile);
    record.findings[0].state = "red";
    EXPECT_LE(summary(source_of(record)).size(), kLongestSummary);
  }
}

TEST(Summary, AddsUpThePropertiesAndDtypesOfAnImplementation) {
  RunRecord record = record_of();
  Cell& row = cell(record, "grpo", "one", "f64", "determinism");
  tally(row, properties::held(), 0);
  tally(row, properties::skipped("contract"), 1);
  record.subjects[0].relaxed_by_contract = 1;
  record.subjects[0].never_asked = {"padding_invariance"};
  record.subjects[0].never_triggered = {"path_parity", "bounds_hold"};
  record.subjects[0].never_told = {"beta other than 1, whose default is 2"};
  record.troubles = {"a worker <ended>"};
  const std::string text = summary(source_of(record));
  EXPECT_NE(text.find("| one | grpo | 2 | 1 | 1 | 1 | 0 | finite_backward (1) |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("- one: relaxed by contract: 1; never asked: padding_invariance; never "
                      "triggered: path_parity, bounds_hold\n"),
            std::string::npos);
  EXPECT_NE(text.find("- one: never asked: beta other than 1, whose default is 2\n"),
            std::string::npos);
  EXPECT_NE(text.find("- trouble: a worker &#60;ended&#62;\n"), std::string::npos);
  EXPECT_NE(text.find("- to accept: <code>f &#124; reason"), std::string::npos);
  record.findings.clear();
  EXPECT_NE(summary(source_of(record)).find("| one | grpo | 2 |"), std::string::npos)
      << "a green run says what it asked, too";
}

TEST(Summary, NamesTheShareOfACampaignAndWhatItLeavesToOthers) {
  RunRecord record = record_of();
  record.request.brought = {"grpo/one", "jsd/other"};
  EXPECT_EQ(summary(source_of(record)).find("shard"), std::string::npos);
  record.request.shard = "2/2";
  const std::string text = summary(source_of(record));
  EXPECT_NE(text.find(", shard 2/2, "), std::string::npos) << text;
  EXPECT_NE(text.find("- jsd/other: asked by another shard\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("grpo/one: asked"), std::string::npos) << text;
}

TEST(Summary, ShowsNewFindingsFirst) {
  PageSource source = source_of(record_of(2));
  source.runs.push_back({"next", record_of(3)});
  const std::string text = summary(source);
  const std::size_t fresh = text.find("**new: ");
  ASSERT_NE(fresh, std::string::npos);
  EXPECT_EQ(text.find("** violated by"), text.find("** violated by", fresh)) << text;
}

}  // namespace
}  // namespace lossgate::report
