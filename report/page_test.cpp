// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "reference/real.h"
#include "report/given_record.h"
#include "report/page/parts.h"
#include "report/record_file.h"

namespace lossgate::report {
namespace {

PageSource source_of(RunRecord record) {
  PageSource source;
  source.runs.push_back({"run", std::move(record)});
  return source;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The page without what stands in its style and script elements.
std::string markup_of(const std::string& page) {
  std::string markup;
  std::size_t at = 0;
  for (std::size_t next = 0; (next = page.find("<s", at)) != std::string::npos;) {
    const std::string_view rest = std::string_view(page).substr(next);
    const std::string end = rest.starts_with("<script")  ? "</script>"
                            : rest.starts_with("<style") ? "</style>"
                                                         : "";
    markup += page.substr(at, next + 2 - at);
    at = next + 2;
    if (end.empty()) continue;
    const std::size_t inside = page.find('>', next);
    markup += page.substr(at, inside + 1 - at);
    at = page.find(end, inside);
  }
  return markup + page.substr(at);
}

/// Every tag and every attribute's name.
std::set<std::string> names_in(const std::string& markup) {
  std::set<std::string> names;
  for (std::size_t at = markup.find('<'); at != std::string::npos; at = markup.find('<', at)) {
    const std::size_t end = markup.find('>', at);
    std::string name;
    bool quoted = false;
    for (; ++at < end + 1;) {
      const char c = markup[at];
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == ' ' || c == '>' || c == '=') {
        if (!name.empty() && name[0] != '/' && name != "\"") names.insert(name);
        name.clear();
      } else if (c != '"') {
        name += c;
      }
    }
  }
  return names;
}

TEST(Page, HoldsHostileTextsAsText) {
  RunRecord plain_one = record_of();
  fill_with(plain_one, "plain");
  const std::set<std::string> known = names_in(markup_of(page(source_of(plain_one))));
  ASSERT_TRUE(known.contains("details") && known.contains("class") && !known.contains("onclick"));
  for (const std::string& text : hostile_texts()) {
    RunRecord record = record_of();
    fill_with(record, text);
    PageSource source;
    source.runs.push_back({text, record, {{text, 1.0, 2.0, 3.0}}});
    source.runs.push_back({text, record, {{text, 3.0, 4.0, 5.0}}});
    const std::string html = page(source);
    const std::string markup = markup_of(html);
    EXPECT_EQ(std::ranges::count(names_in(markup), "script"), 1);
    for (const std::string& name : names_in(markup)) {
      EXPECT_TRUE(known.contains(name) || name == "strong")
          << name << " from " << text.substr(0, 80);
    }
    EXPECT_LT(html.size(), std::size_t{2} << 20);
    if (HasFailure()) return;
  }
}

TEST(Page, SaysWhichParametersAreNeverTold) {
  RunRecord record = record_of();
  record.subjects[0].never_told = {"beta other than 1, whose default is <2>"};
  EXPECT_TRUE(
      has(page(source_of(record)), "never asked: beta other than 1, whose default is &lt;2"));
}

TEST(Page, NamesTheShareOfACampaignAndWhatItLeavesToOthers) {
  RunRecord record = record_of();
  record.request.brought = {"grpo/one", "jsd/other"};
  EXPECT_FALSE(has(page(source_of(record)), "<dt>Shard</dt>"));
  record.request.shard = "2/2";
  const std::string html = page(source_of(record));
  EXPECT_TRUE(has(html, "<dt>Shard</dt><dd>2/2</dd>"));
  EXPECT_TRUE(has(html, "jsd/other: asked by another shard"));
}

TEST(Page, SaysWhereNobodyLookedForCauses) {
  RunRecord record = record_of();
  EXPECT_FALSE(has(page(source_of(record)), "--no-causes"));
  record.request.causes = false;
  record.findings[0].no_experiment = "--no-causes";
  const std::string html = page(source_of(record));
  EXPECT_TRUE(has(html, "<dt>causes<dd>not looked for (--no-causes)"));
  EXPECT_TRUE(has(html, "unbounded exponent; no experiment was made: --no-causes"));
}

TEST(Page, LetsInNoScriptButItsOwn) {
  const std::string html = page(source_of(record_of()));
  EXPECT_TRUE(has(html, "default-src 'none'; script-src 'sha256-"));
  EXPECT_FALSE(has(markup_of(html), "unsafe"));
  EXPECT_FALSE(has(markup_of(html), "http:"));
  EXPECT_FALSE(has(markup_of(html), "https:"));
}

TEST(Page, SaysTheVerdictWithoutAScript) {
  RunRecord record = record_of();
  const std::string red = markup_of(page(source_of(record)));
  EXPECT_TRUE(has(red, "<header class=\"verdict red\">"));
  EXPECT_TRUE(has(red, "Red: 1 red finding</h1>"));
  EXPECT_TRUE(has(
      red, "1 of 1 implementation of one loss violates at least one of 1 properties, on 3 cases."));
  EXPECT_TRUE(has(red, "it is &lt;not&gt; &quot;finite&quot; &amp; {0001}"));
  EXPECT_TRUE(has(red, "lossgate replay findings/0123456789abcdef.case --impl one"));
  EXPECT_TRUE(has(red, "<dt>GPU</dt><dd>not run</dd>"));
  EXPECT_FALSE(has(red, "torch.allclose"));
  record.findings[0].allclose = true;
  EXPECT_TRUE(has(page(source_of(record)), "passes the value of 1 finding of these"));
  record.findings[0].state = "tolerated";
  EXPECT_TRUE(has(page(source_of(record)), "3 cases: 1 finding, none of which is red."));
  record.findings.clear();
  EXPECT_TRUE(has(page(source_of(record)), "<header class=\"verdict green\">"));
  record.cases_run = 2;
  EXPECT_TRUE(has(page(source_of(record)), "<header class=\"verdict open\">"));
}

TEST(Page, SaysWhatACampaignWasGivenInPlaceOfACountOfCases) {
  RunRecord record = record_of();
  record.request.cases = 200;
  EXPECT_TRUE(has(page(source_of(record)), "<dt>cases<dd>200 for each loss and dtype"));
  record.request.cases = 0;
  record.request.budget = "8:00:00";
  const std::string html = page(source_of(from_json(to_json(record), "run.json")));
  EXPECT_TRUE(has(html, "<dt>budget<dd>8:00:00"));
  EXPECT_FALSE(has(html, "for each loss and dtype"));
}

TEST(Page, IsTheSameForTheSameRecord) {
  const RunRecord record = record_of(20);
  const RunRecord again = from_json(to_json(record), "run.json");
  EXPECT_EQ(page(source_of(record)), page(source_of(again)));
}

TEST(Page, HasItsDataAsJson) {
  RunRecord record = record_of();
  fill_with(record, "</script> \xE2\x80\xA8 & \xFF");
  const std::string html = page(source_of(record));
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = html.find(begin) + begin.size();
  const std::string text = html.substr(at, html.find("</script>", at) - at);
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c >= 32 && c < 127; }));
  EXPECT_EQ(nlohmann::json::parse(text)["findings"].size(), 1U);
}

TEST(Page, SaysWhatIsNewSinceTheRunBefore) {
  PageSource source;
  source.runs.push_back({"first", record_of()});
  source.runs.push_back({"second", record_of()});
  source.runs[1].record.findings = {finding_of("g", "rare", 1)};
  const std::string html = page(source);
  EXPECT_TRUE(has(html, "<strong>1 new</strong> since first, 1 gone."));
  EXPECT_TRUE(has(html, "<strong>new</strong></span></summary>"));
}

TEST(Page, CallsNothingGoneThatWasNotAsked) {
  PageSource source;
  source.runs.push_back({"first", record_of()});
  source.runs.push_back({"second", record_of()});
  RecordedFinding other = finding_of("g", "rare", 1);
  other.implementation = "two";
  source.runs[0].record.findings.push_back(other);
  std::string html = page(source);
  EXPECT_TRUE(has(html, "since first, 0 gone, 1 still there, 1 not asked in second.</p>"));
  EXPECT_TRUE(has(html,
                  "<summary>What was not asked</summary><ul class=\"fingerprints\"><li><code>"
                  "finite_backward VIOLATED by two (grpo, f32; unbounded exponent): "
                  "first/findings/0123456789abcdef.case</code>"));
  source.runs[0].record.findings[1].implementation = "one";
  html = page(source);
  EXPECT_TRUE(has(html, "since first, 1 gone, 1 still there.</p>"));
  source.runs[0].record.cases_run = 4;
  html = page(source);
  EXPECT_TRUE(has(html, "since first, 1 not met in these 3 cases, 1 still there.</p>"));
}

TEST(Page, MarksTheFlipBetweenRuns) {
  PageSource source;
  source.runs.push_back({"1.0", record_of()});
  source.runs.push_back({"1.1", record_of()});
  EXPECT_TRUE(has(page(source), "0 verdicts flipped"));
  const auto violated = static_cast<std::size_t>(properties::Verdict::violated);
  source.runs[1].record.cells[0].verdicts[violated] = 0;
  const std::string html = page(source);
  EXPECT_TRUE(has(html, "One verdict flipped"));
  EXPECT_TRUE(has(html, "<td class=\"h flip\">"));
}

TEST(Page, DrawsTheCaseOfAFindingWithItsGradient) {
  LossSignature signature;
  signature.id = "grpo";
  signature.mask = "mask";
  signature.fields = {{.name = "log_prob",
                       .role = Role::differentiable,
                       .quantity = Quantity::log_prob,
                       .axes = {Axis::sequences, Axis::tokens}},
                      {.name = "mask",
                       .role = Role::mask,
                       .quantity = Quantity::mask,
                       .axes = {Axis::sequences, Axis::tokens},
                       .dtypes = {Dtype::u8}}};
  StoredCase stored{&signature, {}};
  stored.c.shape[Axis::sequences] = 1;
  stored.c.shape[Axis::tokens] = 2;
  stored.c.batch.fields = {{"log_prob", Tensor::zeros(Dtype::f32, {1, 2})},
                           {"mask", Tensor::zeros(Dtype::u8, {1, 2})}};
  stored.c.batch.at("log_prob").set(0, -100.0);
  stored.c.batch.at("mask").set(0, 1.0);
  PageSource source = source_of(record_of());
  RecordedFinding& finding = source.runs[0].record.findings[0];
  finding.outputs = {{"gradient.log_prob", {1, 2}, {0.5, NAN}}};
  source.cases[finding.case_file] = stored;
  const std::string html = page(source);
  EXPECT_TRUE(has(html, "<td class=\"b4\" title=\"[0, 0] -100 (0xc2c80000)\">-100"));
  EXPECT_TRUE(has(html,
                  "<td class=\"z m x\" title=\"[0, 1] 0 (0x00000000), masked, the place of the "
                  "finding\">0"));
  EXPECT_TRUE(has(html, "gradient.log_prob <span class=\"quiet\">as computed, f32"));
  EXPECT_TRUE(has(html, "<td class=\"q m x\" title=\"[0, 1] nan "));
  finding.outputs[0].extents = {2, 1};  // not that field's
  EXPECT_FALSE(has(page(source), "as computed"));
}

TEST(Page, ShowsARecordOfBeforeWhatWasAddedLater) {
  auto json = nlohmann::ordered_json::parse(to_json(record_of()));
  for (const char* key : {"coverage", "splits", "campaign"}) ASSERT_EQ(json.erase(key), 1U) << key;
  ASSERT_EQ(json["cells"][0].erase("ratios"), 1U);
  for (const char* key : {"ulp_error", "allclose", "outputs"}) {
    ASSERT_EQ(json["findings"][0].erase(key), 1U) << key;
  }
  const std::string html = page(source_of(from_json(json.dump(), "run.json")));
  EXPECT_TRUE(has(html, "Red: 1 red finding</h1>"));
  EXPECT_FALSE(has(html, "<a href=\"#coverage\">"));
}

TEST(Page, ShowsHowFarSplitsMoveALoss) {
  RunRecord record = record_of();
  EXPECT_FALSE(has(page(source_of(record)), "id=\"splits\""));
  properties::SplitBias bias{.off_by = {0.0, -0.25, -0.25, -30.0, 1e-8},
                             .worst = "[0] [1] on 2 ranks"};
  count_splits(record, "grpo", "one", "f32", bias, 2);
  EXPECT_EQ(split_counts(record.splits[0]),
            (std::vector<std::int64_t>{1, 2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
  const std::string html = page(source_of(record));
  EXPECT_TRUE(has(html, "<h2><a href=\"#splits\">Split bias</a></h2>"));
  EXPECT_TRUE(has(html, "<td class=\"v\">-30<td>[0] [1] on 2 ranks"));
}

TEST(Page, CountsNoVariantAsCaughtThatWasNotAsked) {
  RunRecord record = record_of();
  for (const char* name : {"caught", "missed", "unasked"}) {
    Subject subject;
    subject.loss = "grpo", subject.name = name, subject.twin = "one";
    record.subjects.push_back(subject);
  }
  Kill kill;
  kill.loss = "grpo", kill.implementation = "caught", kill.killed = true;
  record.kills.push_back(kill);
  kill.implementation = "missed", kill.killed = false;
  record.kills.push_back(kill);
  EXPECT_TRUE(has(page(source_of(record)), "<dd>1 of 2, 1 not asked</dd>"));
}

TEST(Page, TellsWhatIsNewFromWhatIsAccepted) {
  RunRecord record = record_of();
  EXPECT_TRUE(has(page(source_of(record)), "Nothing is accepted as it is"));
  record.findings.assign(5, finding_of("a", "rare", 0));
  record.findings[1].state = "waived";
  EXPECT_TRUE(has(page(source_of(record)), "<strong>4 new</strong>; 1 waived; 0 vanished"));
  record.findings[2].state = "known";
  record.findings[3].state = "tolerated";
  record.findings[4].state = "expired waiver";
  EXPECT_TRUE(has(page(source_of(record)),
                  "<strong>2 new</strong>, 1 tolerated; 1 known to the baseline; 1 waived; 1 "
                  "waived until a day that is past; 0 vanished"));
}

TEST(Page, SaysWithWhichOptionsANumberIsExpected) {
  EXPECT_TRUE(has(page(source_of(record_of())),
                  "<dt>options<dd class=\"mono\">reduction token_mean, clip_low 0.2<dt>"));
}

TEST(Page, HasItsLineWhereComparisonsFail) {
  EXPECT_EQ(kMostAllowed, reference::kThreshold);
  RunRecord record = record_of();
  record.cells[0].worst_case = "0123456789abcdef";
  record.cells[0].worst_ratio = 1.5;
  EXPECT_FALSE(has(page(source_of(record)), "<td class=\"v\">1.5"));
  record.cells[0].worst_ratio = 2.5;
  EXPECT_TRUE(has(page(source_of(record)), "<td class=\"v\">2.5"));
  EXPECT_TRUE(has(page(source_of(record)), "\"most_allowed\":2.0"));
}

TEST(Page, SetsApartHowManyComparisonsAreViolated) {
  RunRecord record = record_of();
  record.cells[0].worst_case = "0123456789abcdef";
  record.cells[0].ratios = {{"1e-1", 3}, {"1e0", 4}, {"2e0", 5}, {"1e1", 6}, {"inf", 7}};
  const std::string html = page(source_of(record));
  EXPECT_TRUE(has(html, "from 1e-1<th scope=\"col\">from 1e0<th scope=\"col\">beyond 2</thead>"));
  EXPECT_TRUE(has(html, "<td>3<td>4<td>18</table>"));
}

TEST(Page, ShowsACampaignOverTime) {
  RunRecord record = record_of();
  EXPECT_FALSE(has(page(source_of(record)), "id=\"campaign\""));
  for (int i = 1; i <= 100; ++i) {
    record.campaign.push_back(
        {.seconds = 90.0 * i, .cases = 1000 * i, .features = 10 + i, .findings = i / 50});
  }
  record.campaign.back().memory_mib = 1300;
  const std::string html = page(source_of(record));
  EXPECT_TRUE(has(html,
                  "100,000 cases in 2 h 30 min showed 110 features and 2 findings, the last within "
                  "2 h 30 min."));
  EXPECT_TRUE(has(html, "<tr><th scope=\"row\">2 h 30 min<td>100,000<td>110<td>2<td>1,300"));
  EXPECT_TRUE(has(html, "<td>8,000<td>18<td>0<td>unknown"));
  EXPECT_TRUE(has(html, "[9000.0,100000,110,2,1300]"));
}

TEST(Page, ComparesBenchmarksWithThoseOfTheRunBefore) {
  PageSource source;
  source.runs.push_back({"1.0", record_of(), {{"jsd", 100.0}, {"gone", 1.0}}});
  source.runs.push_back({"1.1", record_of(), {{"jsd", 250.0, 4e9}, {"new", 3.5e6}}});
  std::string html = page(source);
  EXPECT_TRUE(has(html, "times as long as in 1.0"));
  EXPECT_TRUE(has(html, "<tr><th scope=\"row\">jsd<td>250 ns<td>4 G<td><td>2.50"));
  EXPECT_TRUE(has(html, "<tr><th scope=\"row\">new<td>3.5 ms<td><td><td>"));
  source.runs.erase(source.runs.begin());
  html = page(source);
  EXPECT_FALSE(has(html, "times as long"));
  source.runs[0].benchmarks.clear();
  EXPECT_FALSE(has(page(source), "id=\"benchmarks\""));
}

TEST(Page, StaysBelowTwoMegabytesForAThousandFindings) {
  EXPECT_LT(page(source_of(record_of(1000))).size(), 2'000'000U);
}

}  // namespace
}  // namespace lossgate::report
