// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

// The properties that any variant must violate, in the order of the run.
std::vector<std::string> killers(const RunRecord& record) {
  std::vector<std::string> names;
  for (const PropertyEntry& p : record.properties) {
    const auto kills = [&](const Kill& k) { return k.property == p.name; };
    if (std::ranges::any_of(record.kills, kills)) names.push_back(p.name);
  }
  return names;
}

const Kill* kill_of(const RunRecord& record, const Subject& subject, const std::string& property) {
  for (const Kill& k : record.kills) {
    if (k.loss == subject.loss && k.implementation == subject.name && k.property == property) {
      return &k;
    }
  }
  return nullptr;
}

std::string square(const Kill* kill) {
  if (!kill) return "<td>";
  if (!kill->killed) {
    return fmt::format("<td class=\"v\" title=\"{}\">{}<span class=\"sr\"> cases survived</span>",
                       html(kill->trouble), grouped(kill->hostile_cases));
  }
  const char* pace = kill->hostile_cases <= 1 ? "k1" : kill->within_first_eight() ? "k2" : "k3";
  return fmt::format("<td class=\"{}\" title=\"case {}\">{}", pace, html(kill->case_id),
                     kill->by_long_case() ? "long" : grouped(kill->hostile_cases));
}

std::string totals(const RunRecord& record) {
  const auto killed = std::ranges::count_if(record.kills, &Kill::killed);
  const auto early = std::ranges::count_if(record.kills, &Kill::within_first_eight);
  const auto of_length = std::ranges::count_if(record.kills, &Kill::by_long_case);
  return fmt::format(
      "<p>{} of {} pairs of a variant and a property that must notice it were caught, {} of them "
      "within the first 8 hostile cases, {} by long cases alone. A number is the case that did "
      "it.</p>\n"
      "<figure class=\"chart\" id=\"chart-kills\" hidden></figure>\n",
      grouped(killed), grouped(std::ssize(record.kills)), grouped(early), grouped(of_length));
}

}  // namespace

std::string kills_part(const RunRecord& record) {
  if (record.kills.empty()) return "";
  const std::vector<std::string> properties = killers(record);
  std::string text =
      totals(record) +
      "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Faulty "
      "variants by property\"><table class=\"board\"><thead><tr><th "
      "scope=\"col\">Faulty variant";
  for (const std::string& p : properties) {
    text += "<th scope=\"col\" class=\"turned\"><span>" + html(p) + "</span>";
  }
  text += "</thead>\n";
  std::string loss;
  for (const Subject& subject : record.subjects) {
    if (!subject.faulty()) continue;
    if (subject.loss != loss) {
      text += fmt::format(
          "<tbody><tr class=\"loss\"><th colspan=\"{}\" scope=\"colgroup\"><span>{}</span>",
          properties.size() + 1, html(loss = subject.loss));
    }
    text += fmt::format("\n<tr><th scope=\"row\" title=\"{}; {}; {}\">{}", html(subject.cause),
                        html(subject.trigger), html(subject.thread), html(subject.name));
    for (const std::string& p : properties) text += square(kill_of(record, subject, p));
  }
  return text + "</table></div>\n";
}

}  // namespace lossgate::report
