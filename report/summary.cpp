// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

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

// Of each implementation: the properties that it violates, with the cases.
std::string board_rows(const RunRecord& record) {
  std::string text = "| implementation | loss | violated |\n|---|---|---|\n";
  std::int64_t left_out = 0;
  for (const Subject& subject : record.subjects) {
    if (subject.faulty()) continue;
    std::vector<std::pair<std::string, std::int64_t>> violated;
    for (const Cell& c : record.cells) {
      const auto count = c.verdicts[static_cast<std::size_t>(properties::Verdict::violated)];
      if (c.loss != subject.loss || c.implementation != subject.name || count == 0) continue;
      const auto known = std::ranges::find(violated, c.property, [](auto& v) { return v.first; });
      if (known == violated.end()) {
        violated.emplace_back(c.property, count);
      } else {
        known->second += count;
      }
    }
    if (violated.empty()) continue;
    std::string list;
    for (const auto& [property, count] : violated) {
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", words(property), count);
    }
    const std::string row =
        fmt::format("| {} | {} | {} |\n", words(subject.name), words(subject.loss), list);
    if (text.size() + row.size() > kRoomForBoard) {
      left_out += 1;
    } else {
      text += row;
    }
  }
  if (left_out > 0) text += fmt::format("\n{} more\n", counted(left_out, "implementation"));
  return text;
}

std::string entry(const RunRecord& record, const RecordedFinding& f, bool fresh) {
  std::string text =
      fmt::format("\n**{}{}** violated by **{}** ({}, {}, {}; {})\n\n", fresh ? "new: " : "",
                  words(f.property), words(f.implementation), words(f.loss), words(f.dtype),
                  words(f.grade), counted(f.count, "case"));
  const auto item = [&](const char* label, std::string_view value) {
    if (!value.empty()) text += fmt::format("- {}: {}\n", label, words(value));
  };
  item("rule", statement_of(record, f.property));
  if (!f.source_file.empty()) {
    item("line", fmt::format("{}:{} {}", f.source_file, f.source_line, f.source_text));
  }
  item("place", f.place + (f.detail.empty() ? "" : ": " + f.detail));
  if (!f.actual.empty()) {
    item("actual", fmt::format("{}, expected {}, error ratio {}", f.actual, f.expected,
                               brief(f.error_ratio)));
  }
  item("cause", f.cause);
  text += "- replay: <code>" + words(repro_line(f, "")) + "</code>\n";
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
  std::string text =
      fmt::format("## lossgate: {}\n\n{} of {} cases, profile {}, seed {}, {:.1f} s, commit {}\n\n",
                  words(capitalised(verdict_line(record))), grouped(record.cases_run),
                  grouped(record.cases_planned), words(record.request.profile), record.request.seed,
                  record.seconds, words(record.commit));
  std::vector<const RecordedFinding*> shown;
  for (const RecordedFinding* f : cards(record)) {
    if (f->red() || f->state == "tolerated") shown.push_back(f);
  }
  std::ranges::sort(shown, {}, [&](const RecordedFinding* f) {
    return std::tuple(!f->red(), !is_fresh.contains(f->fingerprint), f);
  });
  if (!shown.empty()) text += board_rows(record);
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
