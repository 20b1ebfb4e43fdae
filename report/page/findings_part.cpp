// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/finding_text.h"
#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

/// Drawings are left out where a page would become too long to send around.
constexpr std::size_t kRoom = std::size_t{1350} << 10,
                      kLeastRoomForDrawings = std::size_t{100} << 10;
constexpr std::size_t kOpen = 3;  ///< cards that are open at first

int rank_of(const RecordedFinding& finding) {
  constexpr std::string_view kStates[] = {"red", "expired waiver", "tolerated", "known", "waived"};
  return static_cast<int>(std::ranges::find(kStates, finding.state) - kStates);
}

std::string pair(std::string_view label, const std::string& text, const char* attributes = "") {
  return text.empty() ? "" : fmt::format("<dt>{}<dd{}>{}", label, attributes, text);
}

// The line where to look, as short as it can be in a headline.
std::string short_place(const RecordedFinding& f) {
  if (f.source_file.empty()) return html(f.place, 80);
  const std::string name = f.source_file.substr(f.source_file.rfind('/') + 1);
  return html(fmt::format("{}:{}", name, f.source_line), 80);
}

std::string summary_of(const RecordedFinding& f, bool fresh) {
  return fmt::format(
      "<summary><span class=\"state {}\">{}</span> <span class=\"what\"><b>{}</b> {}</span> "
      "<span class=\"quiet\">{}</span> <span class=\"quiet end\">{} · {} · {} · "
      "{}{}</span></summary>",
      f.red() ? "red" : "calm", html(f.state), html(f.property), html(f.implementation),
      short_place(f), html(f.loss), html(f.dtype), html(f.grade), counted(f.count, "case"),
      fresh ? " · <strong>new</strong>" : "");
}

std::string numbers_of(const RecordedFinding& f) {
  if (f.actual.empty()) return "";
  const bool any = f.expected == "nan";
  std::string text = fmt::format(
      "<table class=\"numbers\"><tr><th scope=\"row\">actual<td class=\"bad\">{}<tr><th "
      "scope=\"row\">expected<td>{}",
      html(f.actual), html(expected_text(f)));
  if (!any) {
    text += fmt::format("<tr><th scope=\"row\">allowed difference<td>{}", brief(f.allowed));
    text += fmt::format("<tr><th scope=\"row\">error ratio<td>{}", brief(f.error_ratio));
    if (f.ulp_error > 0.0) {
      text += fmt::format("<tr><th scope=\"row\">ulp error<td>{}", brief(f.ulp_error));
    }
    if (f.allclose) text += "<tr><th scope=\"row\">torch.allclose<td>would pass this";
  }
  return text + "</table>";
}

// What a test with the usual tolerance would have said.
std::string accepted_by_allclose(const RunRecord& record) {
  const auto accepted = std::ranges::count_if(record.findings, &RecordedFinding::allclose);
  if (accepted == 0) return "";
  return fmt::format(
      "<p><code>torch.allclose</code>, as it is called by default, passes the value of {} of "
      "these.</p>\n",
      counted(accepted, "finding"));
}

std::string facts_of(const RecordedFinding& f, std::string_view statement) {
  std::string inputs;
  for (const std::string& input : f.inputs) {
    inputs += (inputs.empty() ? "" : "<br>") + html(input);
  }
  std::string source;
  if (!f.source_file.empty()) {
    source = fmt::format("<code>{}:{}</code>", html(f.source_file), f.source_line);
    if (!f.source_text.empty()) source += "<pre>" + html(f.source_text) + "</pre>";
  }
  std::string text = "<p class=\"statement\">" + html(statement) + "</p>";
  text += "<div class=\"sides\"><dl>";
  text += pair("line", source);
  text += pair("place", html(f.place + (f.detail.empty() ? "" : ": " + f.detail)));
  text += pair("inputs", inputs, " class=\"mono\"");
  text += pair("options", html(fmt::format("{}", fmt::join(f.options, ", "))), " class=\"mono\"");
  text += pair("grade", html(f.grade + (f.reach.empty() ? "" : "; " + f.reach)));
  if (!f.cause.empty()) text += pair("cause", html(cause_text(f)));
  text += pair(fix_label(f), html(usual_fix(f.property, f.cause)));
  text += pair("state", html(f.state_reason));
  return text + "</dl><div>" + numbers_of(f) + "</div></div>";
}

std::string commands_of(const RecordedFinding& f) {
  std::string text = "<p class=\"repro\"><code>" + html(f.repro) + "</code></p>";
  if (f.red()) {
    text += fmt::format(
        "<p class=\"accept quiet\">to accept: <code>{} | reason | issue | expires "
        "YYYY-MM-DD</code></p>",
        html(f.fingerprint));
  }
  return text;
}

std::string toolbar() {
  std::string text =
      "<form class=\"toolbar\" id=\"toolbar\" hidden role=\"search\" aria-label=\"Filter the "
      "findings\"><label>search <input type=\"search\" id=\"search\" autocomplete=\"off\"></label>";
  for (const char* key : {"state", "property", "implementation", "loss", "grade"}) {
    text += fmt::format(
        "<label>{0} <select id=\"by-{0}\"><option value=\"\">all</option></select>"
        "</label>",
        key);
  }
  return text +
         "<label>order <select id=\"order\"><option value=\"\">red first</option><option "
         "value=\"ratio\">error ratio</option><option value=\"count\">cases</option><option "
         "value=\"property\">property</option><option value=\"implementation\">implementation"
         "</option></select></label><output id=\"shown\" for=\"search\"></output></form>\n";
}

}  // namespace

std::vector<const RecordedFinding*> cards(const RunRecord& record) {
  std::vector<const RecordedFinding*> ordered;
  for (const RecordedFinding& finding : record.findings) ordered.push_back(&finding);
  std::ranges::sort(ordered, {},
                    [](const RecordedFinding* f) { return std::pair(rank_of(*f), f); });
  return ordered;
}

std::string findings_part(const PageSource& source) {
  const RunRecord& record = source.record();
  if (record.findings.empty()) return "<p>Nothing violated a property.</p>\n";
  const std::vector<std::string> fresh = fresh_fingerprints(source);
  const std::set<std::string> is_fresh(fresh.begin(), fresh.end());
  const std::vector<const RecordedFinding*> findings = cards(record);
  std::vector<std::pair<std::string, std::string>> texts;  // before and after the drawing
  std::size_t length = 0;
  for (const RecordedFinding* f : findings) {
    const bool open = texts.size() < kOpen && f->red();
    texts.emplace_back(
        fmt::format("<details class=\"finding\" id=\"f-{}\"{}>{}<div class=\"body\">{}",
                    anchor(f->fingerprint), open ? " open" : "",
                    summary_of(*f, is_fresh.contains(f->fingerprint)),
                    facts_of(*f, statement_of(record, f->property))),
        commands_of(*f) + "</div></details>\n");
    length += texts.back().first.size() + texts.back().second.size();
  }
  std::size_t room = std::max(kLeastRoomForDrawings, kRoom - std::min(kRoom, length));
  std::string text = accepted_by_allclose(record) + toolbar() + "<div id=\"cards\">\n";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    text += texts[i].first;
    const auto stored = source.cases.find(findings[i]->case_file);
    if (stored != source.cases.end()) {
      const std::string picture = drawing(stored->second, *findings[i]);
      const bool fits = picture.size() <= room;
      room -= fits ? picture.size() : 0;
      text += fits ? picture
                   : "<p class=\"quiet\">Not drawn, for the length of the page: " +
                         html(findings[i]->case_file) + "</p>";
    }
    text += texts[i].second;
  }
  return text + "</div>\n<p><button type=\"button\" id=\"more\" hidden>Show more</button></p>\n";
}

}  // namespace lossgate::report
