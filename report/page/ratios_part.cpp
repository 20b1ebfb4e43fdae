// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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

}  // namespace

std::string ratios_part(const RunRecord& record) {
  const std::vector<const Cell*> worst = worst_cells(record);
  if (worst.empty()) return "";
  std::string text =
      "<p>An error divided by the bound that the rules give this arithmetic on this case: up to 1 "
      "is "
      "rounding, beyond 1 nothing explains it. A dot is the worst case of one implementation, "
      "dtype "
      "and property.</p>\n<figure class=\"chart\" id=\"chart-ratios\" hidden></figure>\n"
      "<details><summary>The worst of each loss and dtype</summary><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Worst error ratios\"><table class=\"counts\">"
      "<thead><tr><th scope=\"col\">Loss<th scope=\"col\">dtype<th scope=\"col\">error ratio<th "
      "scope=\"col\">implementation<th scope=\"col\">property<th scope=\"col\">case</thead>";
  for (const Cell* c : worst) {
    text += fmt::format("<tr><th scope=\"row\">{}<td>{}<td{}>{}<td>{}<td>{}<td class=\"mono\">{}",
                        html(c->loss), html(c->dtype), c->worst_ratio > 1.0 ? " class=\"v\"" : "",
                        brief(c->worst_ratio), html(c->implementation), html(c->property),
                        html(c->worst_case));
  }
  return text + "</table></div></details>\n";
}

}  // namespace lossgate::report
