// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

/// Of one loss in one dtype, the cell that came closest to its bound, or went farthest beyond.
std::vector<const Cell*> worst_cells(const RunRecord& record) {
  std::vector<const Cell*> worst;
  std::map<std::tuple<std::string, std::string>, std::size_t> rows;
  for (const Cell& c : record.cells) {
    if (c.worst_case.empty()) continue;
    const auto [row, fresh] = rows.try_emplace({c.loss, c.dtype}, worst.size());
    if (fresh) {
      worst.push_back(&c);
    } else if (c.worst_ratio > worst[row->second]->worst_ratio) {
      worst[row->second] = &c;
    }
  }
  return worst;
}

constexpr const char* kDecades[] = {"0",    "1e-6", "1e-5", "1e-4",    "1e-3",
                                    "1e-2", "1e-1", "1e0",  "beyond 2"};

// Cases by the decade of their error ratio, for each loss and dtype.
std::string distribution(const RunRecord& record) {
  std::map<std::string, std::array<std::int64_t, std::size(kDecades)>> rows;
  std::vector<std::string> order;
  for (const Cell& c : record.cells) {
    const std::string name = "<th scope=\"row\">" + html(c.loss) + "<td>" + html(c.dtype);
    for (const auto& [decade, count] : c.ratios) {
      if (!rows.contains(name)) order.push_back(name);
      const auto at = std::ranges::find(kDecades, decade) - kDecades;
      rows[name][static_cast<std::size_t>(std::min(at, std::ssize(kDecades) - 1))] += count;
    }
  }
  if (rows.empty()) return "";
  std::string text =
      "<details><summary>How many comparisons came how close to the bound</summary><div "
      "class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Comparisons by decade\"><table "
      "class=\"counts numeric\"><thead><tr><th scope=\"col\">Loss<th scope=\"col\">dtype";
  for (const char* decade : kDecades) {
    text += fmt::format("<th scope=\"col\">{}{}", decade[0] == '1' ? "from " : "", decade);
  }
  text += "</thead>";
  for (const std::string& name : order) {
    text += "<tr>" + name;
    for (const std::int64_t count : rows[name]) text += "<td>" + (count ? grouped(count) : "");
  }
  return text + "</table></div></details>\n";
}

}  // namespace

std::string ratios_part(const RunRecord& record) {
  const std::vector<const Cell*> worst = worst_cells(record);
  if (worst.empty()) return "";
  std::string text =
      "<p>An error divided by the bound that the rules give this arithmetic on this case: up to 1 "
      "is its rounding, up to " +
      brief(kMostAllowed) +
      " is allowed, beyond that nothing explains it. A dot is the worst case of one "
      "implementation, dtype and property.</p>\n<figure class=\"chart\" id=\"chart-ratios\" "
      "hidden></figure>\n"
      "<details><summary>The worst of each loss and dtype</summary><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Worst error ratios\"><table class=\"counts\">"
      "<thead><tr><th scope=\"col\">Loss<th scope=\"col\">dtype<th scope=\"col\">error ratio<th "
      "scope=\"col\">implementation<th scope=\"col\">property<th scope=\"col\">case</thead>";
  for (const Cell* c : worst) {
    text += fmt::format("<tr><th scope=\"row\">{}<td>{}<td{}>{}<td>{}<td>{}<td class=\"mono\">{}",
                        html(c->loss), html(c->dtype),
                        c->worst_ratio > kMostAllowed ? " class=\"v\"" : "", brief(c->worst_ratio),
                        html(c->implementation), html(c->property), html(c->worst_case));
  }
  return text + "</table></div></details>\n" + distribution(record);
}

}  // namespace lossgate::report
