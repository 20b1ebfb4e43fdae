// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

// The values of one member, each once, in the order of the rows.
std::vector<std::string> distinct(const RunRecord& record, std::string Coverage::*member) {
  std::vector<std::string> values;
  for (const Coverage& row : record.coverage) {
    if (std::ranges::find(values, row.*member) == values.end()) values.push_back(row.*member);
  }
  return values;
}

std::int64_t cases_of(const RunRecord& record, const std::string& loss, const std::string& trait) {
  for (const Coverage& row : record.coverage) {
    if (row.loss == loss && row.trait == trait) return row.cases;
  }
  return 0;
}

}  // namespace

std::string coverage_part(const RunRecord& record) {
  if (record.coverage.empty()) return "";
  const std::vector<std::string> losses = distinct(record, &Coverage::loss);
  const std::vector<std::string> traits = distinct(record, &Coverage::trait);
  std::string text =
      "<p>How many cases of each loss showed what losses fail at. An empty square was not tried, "
      "or "
      "the loss has no such thing.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Coverage\"><table class=\"board\"><thead><tr><th scope=\"col\">Loss";
  for (const std::string& trait : traits) {
    text += "<th scope=\"col\" class=\"turned\"><span>" + html(trait) + "</span>";
  }
  text += "</thead>";
  for (const std::string& loss : losses) {
    text += "\n<tr><th scope=\"row\">" + html(loss);
    for (const std::string& trait : traits) {
      const std::int64_t cases = cases_of(record, loss, trait);
      text += cases == 0 ? "<td class=\"none\"><span class=\"sr\">none</span>"
                         : fmt::format("<td class=\"c{}\">{}",
                                       std::min<std::size_t>(3, std::to_string(cases).size()),
                                       grouped(cases));
    }
  }
  return text + "</table></div>\n";
}

}  // namespace lossgate::report
