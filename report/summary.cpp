// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "report/acceptance.h"
#include "report/board.h"
#include "report/finding_text.h"
#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

constexpr std::size_t kRoomForEnd = 200;  ///< "... and so many more"
constexpr std::size_t kRoomForBoard = kLongestSummary / 4;
constexpr std::size_t kLongestField = 400;

std::string words(std::string_view text) { return markdown_text(text, kLongestField); }

/// What was said of one implementation, over all its properties and dtypes.
struct Tally {
  const Subject* subject = nullptr;
  std::array<std::int64_t, 5> verdicts{};
  std::map<std::string, std::int64_t> violated;  ///< by property
  std::int64_t violations() const {
    return verdicts[static_cast<std::size_t>(properties::Verdict::violated)];
  }
};

/// Those with violations first.
std::vector<Tally> tallies(const RunRecord& record) {
  std::vector<Tally> rows;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const Subject& subject : record.subjects) {
    if (subject.faulty() || !known.try_emplace({subject.loss, subject.name}, rows.size()).second) {
      continue;
    }
    rows.emplace_back().subject = &subject;
  }
  for (const Cell& c : record.cells) {
    const auto row = known.find({c.loss, c.implementation});
    if (row == known.end()) continue;
    Tally& tally = rows[row->second];
    for (std::size_t i = 0; i < c.verdicts.size(); ++i) tally.verdicts[i] += c.verdicts[i];
    const auto count = c.verdicts[static_cast<std::size_t>(properties::Verdict::violated)];
    if (count > 0) tally.violated[c.property] += count;
  }
  std::ranges::sort(rows, {},
                    [](const Tally& row) { return std::pair(row.violations() == 0, row.subject); });
  return rows;
}

std::string row_of(const Tally& row) {
  std::string list;
  for (const auto& [property, count] : row.violated) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", words(property), count);
  }
  return fmt::format("| {} | {} | {} | {} |\n", words(row.subject->name), words(row.subject->loss),
                     fmt::join(row.verdicts, " | "), list);
}

// Of each implementation: how often it held, and what it violates.
std::string board_rows(const RunRecord& record) {
  std::string text =
      "| implementation | loss | held | violated | vacuous | skipped | note | what |\n"
      "|---|---|--:|--:|--:|--:|--:|---|\n";
  std::int64_t left_out = 0;
  for (const Tally& row : tallies(record)) {
    const std::string line = row_of(row);
    const bool fits = text.size() + line.size() <= kRoomForBoard;
    if (fits) text += line;
    left_out += fits ? 0 : 1;
  }
  if (left_out > 0) text += fmt::format("\n{} more\n", counted(left_out, "implementation"));
  return text;
}

std::string listed(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (text.size() + line.size() > kRoomForBoard / 2) return text + "- and more in report.html\n";
    text += (text.empty() ? "\n- " : "- ") + line + "\n";
  }
  return text;
}

// What was not asked since a contract leaves it out, and what kept the run from being whole.
std::string reservations(const RunRecord& record) {
  std::vector<std::string> lines;
  for (const std::string& trouble : record.troubles) lines.push_back("trouble: " + words(trouble));
  for (const std::string& line : elsewhere_lines(record)) lines.push_back(words(line));
  for (const UnfitCases& u : record.unfit) lines.push_back(words(unfit_line(u)));
  for (const Mended& m : record.mended) lines.push_back(words(mended_line(m)));
  for (const Subject& s : record.subjects) {
    for (const std::string& told : s.never_told) {
      lines.push_back(words(s.name) + ": never asked: " + words(told));
    }
    if (s.faulty()) continue;
    if (const std::string some = examined_text(record, s); !some.empty()) {
      lines.push_back(words(s.name) + ": " + words(some));
    }
    if (const std::string open = unjudged_text(record, s); !open.empty()) {
      lines.push_back(words(s.name) + ": not judged: " + words(open));
    }
    if (s.relaxed_by_contract == 0 && s.never_asked.empty()) continue;
    lines.push_back(
        fmt::format("{}: relaxed by contract: {}", words(s.name), s.relaxed_by_contract));
    const auto list = [&](const char* label, const std::string& properties) {
      if (!properties.empty()) lines.back() += label + words(properties);
    };
    list("; never asked: ", never_asked_text(record, s));
    list("; never triggered: ", fmt::format("{}", fmt::join(s.never_triggered, ", ")));
  }
  return listed(lines);
}

// What is not red since somebody says so, and of what was said so what nothing needs.
std::string acceptance(const RunRecord& record) {
  std::vector<std::string> lines;
  for (const Idle& idle : idle_entries(record)) lines.push_back(idle.line());
  for (std::string& line : accepted_lines(record)) lines.push_back(std::move(line));
  for (std::string& line : lines) line = words(line);
  return lines.empty() ? "" : "\n### Accepted\n" + listed(lines);
}

std::string entry(const RunRecord& record, const RecordedFinding& f, bool fresh) {
  std::string text =
      fmt::format("\n**{}{}** violated by **{}** ({}, {}, {}; {})\n\n", fresh ? "new: " : "",
                  words(f.property), words(f.implementation), words(f.loss), words(f.dtype),
                  words(f.grade), counted(f.count, "case"));
  const auto item = [&](std::string_view label, std::string_view value) {
    if (!value.empty()) text += fmt::format("- {}: {}\n", label, words(value));
  };
  item("rule", statement_of(record, f.property));
  if (!f.source_file.empty()) {
    item("line", fmt::format("{}:{} {}", f.source_file, f.source_line, f.source_text));
  }
  item("place", f.place + (f.detail.empty() ? "" : ": " + f.detail));
  item("inputs", fmt::format("{}", fmt::join(f.inputs, ", ")));
  item("options", fmt::format("{}", fmt::join(f.options, ", ")));
  if (!f.actual.empty()) {
    item("actual", fmt::format("{}, expected {}, error ratio {}", f.actual, expected_text(f),
                               brief(f.error_ratio)));
  }
  item("reach", f.reach);
  if (!f.cause.empty()) item("cause", cause_text(f));
  item(fix_label(f), usual_fix(f.property, f.cause));
  item(f.red() ? "expired" : "state", f.state_reason);
  text += "- replay: <code>" + words(f.repro) + "</code>\n";
  if (f.red()) {
    text += "- to accept: <code>" + words(f.fingerprint) +
            " &#124; reason &#124; issue &#124; expires YYYY-MM-DD</code>\n";
  }
  return text;
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace

std::string summary(const PageSource& source) {
  const RunRecord& record = source.record();
  const std::vector<std::string> fresh = fresh_fingerprints(source);
  const std::set<std::string> is_fresh(fresh.begin(), fresh.end());
  const std::string shard =
      record.request.shard.empty() ? "" : ", shard " + words(record.request.shard);
  std::string text = fmt::format(
      "## lossgate: {}\n\n{} of {} cases, profile {}, seed {}{}, {:.1f} s, commit {}\n\n",
      words(capitalised(verdict_line(record))), grouped(record.cases_run),
      grouped(record.cases_planned), words(record.request.profile), record.request.seed, shard,
      record.seconds, words(record.commit));
  std::vector<const RecordedFinding*> shown;
  for (const RecordedFinding* f : cards(record)) {
    if (f->red() || f->state == "tolerated") shown.push_back(f);
  }
  std::ranges::sort(shown, {}, [&](const RecordedFinding* f) {
    return std::tuple(!f->red(), !is_fresh.contains(f->fingerprint), f);
  });
  text += board_rows(record) + reservations(record) + acceptance(record);
  std::size_t number = 0;
  for (; number < shown.size(); ++number) {
    const std::string next =
        entry(record, *shown[number], is_fresh.contains(shown[number]->fingerprint));
    if (text.size() + next.size() + kRoomForEnd > kLongestSummary) break;
    text += next;
  }
  if (number < shown.size()) {
    text +=
        fmt::format("\n{} more in report.html\n",
                    counted(std::ssize(shown) - static_cast<std::ptrdiff_t>(number), "finding"));
  }
  return text;
}

}  // namespace lossgate::report
