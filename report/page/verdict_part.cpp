// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "properties/property.h"
#include "report/acceptance.h"
#include "report/board.h"
#include "report/finding_text.h"
#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

struct Tone {
  const char* name;
  const char* mark;
};

Tone tone_of(const RunRecord& record) {
  switch (exit_status(record)) {
    case 0:
      return {"green", "✓"};
    case 1:
      return {"red", "✗"};
    default:
      return {"open", "?"};
  }
}

// What was asked and what came of it, in one sentence.
std::string lead(const RunRecord& record) {
  std::set<std::string> losses, asked, wrong;
  for (const Subject& s : record.subjects) {
    if (s.faulty()) continue;
    losses.insert(s.loss);
    asked.insert(s.loss + "|" + s.name);
  }
  for (const RecordedFinding& f : record.findings) {
    if (f.red()) wrong.insert(f.loss + "|" + f.implementation);
  }
  const std::string all =
      fmt::format("{} of {}", counted(std::ssize(asked), "implementation"),
                  losses.size() == 1 ? "one loss" : grouped(std::ssize(losses)) + " losses");
  const std::string properties = grouped(std::ssize(record.properties)) + " properties";
  const std::string cases = counted(record.cases_run, "case");
  if (wrong.empty() && record.findings.empty()) {
    return fmt::format("None of {} violates any of {} on {}.", all, properties, cases);
  }
  if (wrong.empty()) {
    return fmt::format("{}, {}, {}: {}, none of which is red.", all, properties, cases,
                       counted(std::ssize(record.findings), "finding"));
  }
  return fmt::format("{} of {} violate{} at least one of {}, on {}.", grouped(std::ssize(wrong)),
                     all, wrong.size() == 1 ? "s" : "", properties, cases);
}

std::string plain_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += "<li><code>" + html(item) + "</code>";
  return "<ul class=\"fingerprints\">" + text + "</ul>";
}

/// Whether a run asked what a finding of another is about: of a property that is none of the
/// catalog's, as that a call returns, whether it asked the implementation anything.
bool asks(const RunRecord& record, const RecordedFinding& f) {
  const bool of_a_call = !properties::find_property(f.property);
  return std::ranges::any_of(record.cells, [&](const Cell& c) {
    return c.loss == f.loss && c.implementation == f.implementation && c.dtype == f.dtype &&
           (of_a_call || c.property == f.property) &&
           c.verdicts[static_cast<std::size_t>(properties::Verdict::skipped)] < c.cases;
  });
}

/// How many of something, after what stands before, and which, to unfold.
struct Counted {
  std::string count, which;
};

Counted counted_among(const char* words, const char* title, const std::vector<std::string>& lines,
                      bool always) {
  if (lines.empty() && !always) return {};
  const std::string list = lines.empty() ? "" : plain_list(lines);
  return {
      fmt::format(", {} {}", grouped(std::ssize(lines)), words),
      list.empty() ? "" : fmt::format("<details><summary>{}</summary>{}</details>", title, list)};
}

/// What became of the findings of the run before. Of fewer cases nobody knows that one is gone.
std::string news_since(const Run& before, const Run& run, std::int64_t fresh) {
  const RunRecord& record = run.record;
  std::set<std::string> now;
  for (const RecordedFinding& f : record.findings) now.insert(f.fingerprint);
  std::int64_t still = 0;
  std::vector<std::string> gone, unasked;
  for (const RecordedFinding& f : before.record.findings) {
    if (now.contains(f.fingerprint)) {
      ++still;
    } else {
      (asks(record, f) ? gone : unasked).push_back(met_line(f, before.name));
    }
  }
  const bool fewer = record.cases_run < before.record.cases_run;
  const std::string missed = fmt::format("not met in these {}", counted(record.cases_run, "case"));
  const Counted lost = fewer ? counted_among(missed.c_str(), "What was not met", gone, false)
                             : counted_among("gone", "What is gone", gone, true);
  const std::string elsewhere = "not asked in " + html(run.name);
  const Counted left = counted_among(elsewhere.c_str(), "What was not asked", unasked, false);
  return fmt::format("<p class=\"news\"><strong>{} new</strong> since {}{}{}{}.</p>",
                     grouped(fresh), html(before.name), lost.count,
                     still > 0 ? fmt::format(", {} still there", grouped(still)) : "", left.count) +
         lost.which + left.which;
}

// What is new: since the run before, since the baseline, or all of it.
std::string news(const PageSource& source) {
  const RunRecord& record = source.record();
  if (source.runs.size() > 1) {
    return news_since(source.runs[source.runs.size() - 2], source.runs.back(),
                      std::ssize(fresh_fingerprints(source)));
  }
  std::map<std::string, std::int64_t> states;
  for (const RecordedFinding& f : record.findings) ++states[f.state];
  if (states["known"] + states["waived"] == 0 && record.vanished.empty()) {
    return "<p class=\"news\">Nothing is accepted as it is, by a baseline or otherwise.</p>";
  }
  std::string text = fmt::format("<p class=\"news\"><strong>{} new</strong>",
                                 grouped(states["red"] + states["tolerated"]));
  if (states["tolerated"] > 0) text += fmt::format(", {} tolerated", grouped(states["tolerated"]));
  for (const auto& [state, words] :
       {std::pair("known", "known to the baseline"), std::pair("waived", "waived"),
        std::pair("expired waiver", "waived until a day that is past")}) {
    if (states[state] > 0) text += fmt::format("; {} {}", grouped(states[state]), words);
  }
  const bool fewer = record.cases_run < record.baseline_cases;
  text += fmt::format("; {} {}.</p>", grouped(std::ssize(record.vanished)),
                      fewer ? vanished_text(record) : "vanished");
  if (!record.vanished.empty()) {
    text += "<details><summary>Which</summary>" + plain_list(record.vanished) + "</details>";
  }
  return text;
}

std::string devices(const RunRecord& record) {
  std::set<std::string> others;
  for (const Subject& s : record.subjects) {
    if (s.device != "cpu" && !s.device.empty()) others.insert(s.device);
  }
  std::string text;
  for (const std::string& device : others) text += (text.empty() ? "" : ", ") + html(device);
  return text.empty() ? "not run" : text;
}

std::string fact(const char* name, const std::string& value, const char* tone = "") {
  return fmt::format("<div class=\"fact{}\"><dt>{}</dt><dd>{}</dd></div>", tone, name, value);
}

std::string facts(const RunRecord& record) {
  const Environment& e = record.environment;
  std::int64_t relaxed = 0, variants = 0, unasked = 0, survivors = 0;
  for (const Subject& s : record.subjects) {
    if (s.faulty()) {
      const auto of_it = [&](const Kill& k) {
        return k.loss == s.loss && k.implementation == s.name;
      };
      variants += 1;
      unasked += std::ranges::none_of(record.kills, of_it);
      survivors +=
          std::ranges::any_of(record.kills, [&](const Kill& k) { return of_it(k) && !k.killed; });
    } else {
      relaxed += s.relaxed_by_contract;
    }
  }
  const bool whole = record.cases_run == record.cases_planned;
  std::string text = "<dl class=\"facts\">";
  text += fact(
      "Cases",
      whole ? grouped(record.cases_run)
            : fmt::format("{} of {}", grouped(record.cases_run), grouped(record.cases_planned)),
      whole ? "" : " bad");
  text += fact("Profile", html(record.request.profile));
  text += fact("Seed", std::to_string(record.request.seed));
  if (!record.request.shard.empty()) text += fact("Shard", html(record.request.shard));
  text += fact("Time", fmt::format("{:.1f} s", record.seconds));
  if (variants > 0) {
    text += fact("Faulty variants caught",
                 fmt::format("{} of {}{}", grouped(variants - unasked - survivors),
                             grouped(variants - unasked),
                             unasked ? fmt::format(", {} not asked", grouped(unasked)) : ""),
                 survivors ? " bad" : "");
  }
  text += fact("Relaxed by contract", grouped(relaxed));
  text += fact("GPU", devices(record));
  text += fact("Machine", html(e.architecture + ", " + e.instruction_set));
  text += fact("Commit", "<code>" + html(record.commit) + "</code>");
  return text + "</dl>\n";
}

}  // namespace

std::vector<std::string> fresh_fingerprints(const PageSource& source) {
  if (source.runs.size() < 2) return {};
  std::set<std::string> before;
  for (const RecordedFinding& f : source.runs[source.runs.size() - 2].record.findings) {
    before.insert(f.fingerprint);
  }
  std::vector<std::string> fresh;
  for (const RecordedFinding& f : source.record().findings) {
    if (!before.contains(f.fingerprint)) fresh.push_back(f.fingerprint);
  }
  return fresh;
}

std::string verdict_part(const PageSource& source) {
  const RunRecord& record = source.record();
  const Tone tone = tone_of(record);
  std::string verdict = verdict_line(record);
  verdict[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(verdict[0])));
  std::string text = fmt::format(
      "<header class=\"verdict {}\"><div class=\"inner\">\n<p class=\"brand\"><b>lossgate</b> "
      "{}</p>\n"
      "<h1><span class=\"mark\" aria-hidden=\"true\">{}</span> {}</h1>\n<p class=\"lead\">{}</p>\n",
      tone.name, html(source.runs.back().name), tone.mark, html(verdict), lead(record));
  text += news(source);
  for (const std::string& trouble : record.troubles) {
    text += "<p class=\"trouble\">Trouble: " + html(trouble) + "</p>";
  }
  for (const std::string& line : elsewhere_lines(record)) {
    text += "<p class=\"news\">" + html(line) + "</p>";
  }
  return text + "\n" + facts(record) + "</div></header>\n";
}

}  // namespace lossgate::report
