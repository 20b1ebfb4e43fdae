// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

using properties::Verdict;

/// A property of an implementation of a loss, in every run: how many cases violated it, or nothing
/// where it was not asked.
struct Row {
  std::string loss, implementation, property;
  std::vector<std::optional<std::int64_t>> violated;

  bool flips(std::size_t run) const {
    return run > 0 && violated[run] && violated[run - 1] &&
           (*violated[run] > 0) != (*violated[run - 1] > 0);
  }
  bool flips() const {
    for (std::size_t run = 1; run < violated.size(); ++run) {
      if (flips(run)) return true;
    }
    return false;
  }
  bool is_violated() const {
    return std::ranges::any_of(violated, [](const auto& count) { return count.value_or(0) > 0; });
  }
};

// Asked: some case said held or violated.
std::vector<Row> rows_of(const std::vector<Run>& runs) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> known;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const Cell& c : runs[run].record.cells) {
      const std::string key = c.loss + "|" + c.implementation + "|" + c.property;
      const auto [at, fresh] = known.try_emplace(key, rows.size());
      if (fresh) {
        rows.push_back({c.loss, c.implementation, c.property, {}});
        rows.back().violated.resize(runs.size());
      }
      const std::int64_t violated = c.verdicts[static_cast<std::size_t>(Verdict::violated)];
      const std::int64_t held = c.verdicts[static_cast<std::size_t>(Verdict::held)];
      auto& count = rows[at->second].violated[run];
      if (violated + held > 0) count = count.value_or(0) + violated;
    }
  }
  return rows;
}

std::string table(const std::vector<Run>& runs, const std::vector<Row>& rows, bool flipped) {
  std::string body;
  for (const Row& row : rows) {
    if (!row.is_violated() || row.flips() != flipped) continue;
    body += fmt::format("\n<tr><th scope=\"row\">{} <span class=\"quiet\">{}</span><td>{}",
                        html(row.implementation), html(row.loss), html(row.property));
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const auto& count = row.violated[run];
      const char* flip = row.flips(run) ? " flip" : "";
      body += !count       ? "<td class=\"s\">–<span class=\"sr\">not asked</span>"
              : *count > 0 ? fmt::format("<td class=\"v{}\">{}<span class=\"sr\"> violated</span>",
                                         flip, grouped(*count))
                           : fmt::format("<td class=\"h{}\">✓<span class=\"sr\">held</span>", flip);
    }
  }
  if (body.empty()) return "";
  std::string head =
      "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Runs side by "
      "side\"><table class=\"board runs\"><thead><tr><th scope=\"col\">Implementation<th "
      "scope=\"col\">Property";
  for (const Run& run : runs) head += "<th scope=\"col\">" + html(run.name);
  return head + "</thead>" + body + "</table></div>\n";
}

}  // namespace

std::string releases_part(const PageSource& source) {
  if (source.runs.size() < 2) return "";
  const std::vector<Row> rows = rows_of(source.runs);
  const auto flips = std::ranges::count_if(rows, [](const Row& row) { return row.flips(); });
  std::string text = fmt::format(
      "<p>{} between these runs; a flip is marked where it happened. A number counts the cases "
      "that "
      "violated.</p>\n",
      flips == 1 ? "One verdict flipped" : grouped(flips) + " verdicts flipped");
  text += table(source.runs, rows, true);
  const std::string same = table(source.runs, rows, false);
  if (!same.empty()) {
    text += "<details><summary>Violated without a flip</summary>" + same + "</details>\n";
  }
  return text;
}

}  // namespace lossgate::report
