// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

constexpr std::size_t kMostRows = 300;

std::string time_text(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.3g} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.3g} µs", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.3g} ms", nanoseconds / 1e6);
  return fmt::format("{:.3g} s", nanoseconds / 1e9);
}

// 1.5 million items as "1.5 M".
std::string rate_text(double per_second) {
  constexpr std::pair<double, const char*> kPrefixes[] = {
      {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& [least, prefix] : kPrefixes) {
    if (per_second >= least) return fmt::format("{:.3g}{}", per_second / least, prefix);
  }
  return per_second > 0.0 ? brief(per_second) : "";
}

// How many times as long as in the run before, where that has it.
std::string compared(const Benchmark& now, const std::vector<Benchmark>& before) {
  const auto earlier = std::ranges::find(before, now.name, &Benchmark::name);
  if (earlier == before.end() || !(earlier->nanoseconds > 0.0)) return "<td>";
  return fmt::format("<td>{:.2f}", now.nanoseconds / earlier->nanoseconds);
}

}  // namespace

std::string benchmarks_part(const PageSource& source) {
  const std::vector<Benchmark>& now = source.runs.back().benchmarks;
  if (now.empty()) return "";
  const Run* before = source.runs.size() > 1 ? &source.runs[source.runs.size() - 2] : nullptr;
  const bool comparable = before && !before->benchmarks.empty();
  std::string text =
      "<p>Measured beside the run. Figures of one machine mean nothing on another.</p>\n<div "
      "class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Benchmarks\"><table "
      "class=\"counts numeric\"><thead><tr><th scope=\"col\">Benchmark<th scope=\"col\">processor "
      "time<th "
      "scope=\"col\">items a second<th scope=\"col\">bytes a second";
  if (comparable) text += "<th scope=\"col\">times as long as in " + html(before->name, 80);
  text += "</thead>";
  for (std::size_t i = 0; i < std::min(kMostRows, now.size()); ++i) {
    const Benchmark& b = now[i];
    text += fmt::format("<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}", html(b.name, 200),
                        time_text(b.nanoseconds), rate_text(b.items_per_second),
                        rate_text(b.bytes_per_second));
    if (comparable) text += compared(b, before->benchmarks);
  }
  text += "</table></div>\n";
  if (now.size() > kMostRows) {
    text += fmt::format("<p class=\"quiet\">{} more are not shown.</p>\n",
                        counted(static_cast<std::int64_t>(now.size() - kMostRows), "benchmark"));
  }
  return text;
}

}  // namespace lossgate::report
