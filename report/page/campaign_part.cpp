// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

constexpr std::size_t kMostRows = 12;

std::string clock(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 60) return fmt::format("{:.1f} s", seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string in_short(const std::vector<CampaignPoint>& points) {
  const CampaignPoint& end = points.back();
  const auto last = std::ranges::find(points, end.findings, &CampaignPoint::findings);
  return fmt::format("<p>{} in {} showed {} and {}{}.</p>\n", counted(end.cases, "case"),
                     clock(end.seconds), counted(end.features, "feature"),
                     counted(end.findings, "finding"),
                     end.findings > 0 ? ", the last within " + clock(last->seconds) : "");
}

}  // namespace

std::string campaign_part(const RunRecord& record) {
  const std::vector<CampaignPoint>& points = record.campaign;
  if (points.empty()) return "";
  std::string text =
      in_short(points) +
      "<p class=\"quiet\">A feature is what a case shows and none before it did: a larger error "
      "ratio, a peak nearer to overflow, another clamp, mask or verdict.</p>\n"
      "<figure class=\"chart\" id=\"chart-campaign\" hidden></figure>\n"
      "<details><summary>The numbers</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"The campaign over time\"><table class=\"counts numeric\"><thead><tr><th "
      "scope=\"col\">Time<th scope=\"col\">cases<th scope=\"col\">features<th "
      "scope=\"col\">findings<th scope=\"col\">MiB resident</thead>";
  const std::size_t rows = std::min(kMostRows, points.size());
  for (std::size_t i = 1; i <= rows; ++i) {
    const CampaignPoint& p = points[i * points.size() / rows - 1];
    text += fmt::format("<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}<td>{}", clock(p.seconds),
                        grouped(p.cases), grouped(p.features), grouped(p.findings),
                        p.memory_mib > 0 ? grouped(p.memory_mib) : "unknown");
  }
  return text + "</table></div></details>\n";
}

}  // namespace lossgate::report
