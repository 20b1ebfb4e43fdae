// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

/// Decades of SplitErrors::off_by from the most that is lost to the most that is added; what lies
/// beyond the ends is counted there.
constexpr const char* kDecades[] = {"-1e0",  "-1e-1", "-1e-2", "-1e-3", "-1e-4",
                                    "-1e-5", "-1e-6", "0",     "+1e-6", "+1e-5",
                                    "+1e-4", "+1e-3", "+1e-2", "+1e-1", "+1e0"};

std::string row_of(const SplitErrors& row) {
  std::string text = fmt::format("<tr><th scope=\"row\">{}<td>{}<td>{}", html(row.implementation),
                                 html(row.loss), html(row.dtype));
  for (const std::int64_t count : split_counts(row)) text += "<td>" + (count ? grouped(count) : "");
  return text + fmt::format("<td class=\"v\">{:+.3g}<td>{} <span class=\"quiet\">case {}</span>",
                            row.worst, html(row.worst_split, 120), html(row.worst_case));
}

}  // namespace

std::vector<std::string> split_decades() { return {std::begin(kDecades), std::end(kDecades)}; }

std::vector<std::int64_t> split_counts(const SplitErrors& row) {
  std::vector<std::int64_t> counts(std::size(kDecades), 0);
  for (const auto& [decade, count] : row.off_by) {
    const auto at = std::ranges::find(kDecades, decade);
    const bool negative = decade.starts_with('-');
    const auto place = at != std::end(kDecades) ? at - std::begin(kDecades)
                       : negative               ? 0
                                                : std::ssize(kDecades) - 1;
    counts[static_cast<std::size_t>(place)] += count;
  }
  return counts;
}

std::string splits_part(const RunRecord& record) {
  if (record.splits.empty()) return "";
  std::string text =
      "<p>Each case on which a split changes the result was split at random, 24 times. A bar "
      "counts "
      "the splits that move the loss by so much of what the whole batch gives: to the left less is "
      "reported, to the right more. Heights go by the square root, so that few are seen beside "
      "many.</p>\n"
      "<figure class=\"chart\" id=\"chart-splits\" hidden></figure>\n"
      "<details><summary>The numbers, and the worst split of each</summary><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Split bias\"><table class=\"counts\"><thead><tr>"
      "<th scope=\"col\">Implementation<th scope=\"col\">loss<th scope=\"col\">dtype";
  for (const char* decade : kDecades) text += fmt::format("<th scope=\"col\">{}", decade);
  text += "<th scope=\"col\">at worst<th scope=\"col\">sequences of each micro-batch</thead>";
  for (const SplitErrors& row : record.splits) text += row_of(row);
  return text + "</table></div></details>\n";
}

}  // namespace lossgate::report
