// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/finding_text.h"
#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

std::string pair(const char* label, const std::string& text) {
  return text.empty() ? "" : fmt::format("<dt>{}<dd>{}", label, text);
}

std::string joined(const std::vector<std::string>& items, const char* none = "",
                   const char* between = ", ") {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : between) + html(item);
  return text.empty() ? none : text;
}

std::string request(const RunRecord& record) {
  const Request& r = record.request;
  return "<h3>Asked for</h3><dl>" + pair("profile", html(r.profile)) +
         pair("seed", std::to_string(r.seed)) +
         pair("cases", r.cases > 0 ? grouped(r.cases) + " for each loss and dtype" : "") +
         pair("budget", html(r.budget)) + pair("losses", joined(r.losses, "all")) +
         pair("implementations", joined(r.implementations, "all")) +
         pair("properties", joined(r.properties, "all")) + pair("dtypes", joined(r.dtypes, "all")) +
         pair("hardening", r.hardening ? "asked as well" : "not asked") +
         pair("stored cases", joined(r.corpora)) + pair("red from grade", html(r.fail_on)) +
         pair("causes", r.causes ? "" : "not looked for (--no-causes)") +
         pair("share", html(r.shard)) + "</dl>";
}

std::string environment(const RunRecord& record) {
  const Environment& e = record.environment;
  return "<h3>Environment</h3><dl>" +
         pair("lossgate", html(record.version + ", " + record.commit)) +
         pair("machine", html(e.architecture + ", " + e.instruction_set)) +
         pair("compiler", html(e.compiler)) + pair("threads per call", std::to_string(e.threads)) +
         pair("rounding", html(e.rounding)) +
         pair("subnormals", e.flush_to_zero || e.denormals_are_zero ? "flushed to zero" : "kept") +
         pair("reference", fmt::format("{} binary digits", e.real_digits)) +
         pair("LibTorch", html(e.torch)) + pair("dtypes", joined(e.dtypes, "", "<br>")) + "</dl>";
}

std::string glossary(const RunRecord& record) {
  std::string text = "<h3>Properties</h3><dl class=\"glossary\">";
  for (const PropertyEntry& p : record.properties) {
    text += fmt::format("<dt id=\"p-{}\">{}<dd>{} <span class=\"quiet\">{}</span>", anchor(p.name),
                        html(p.name), html(p.statement), html(p.tier));
  }
  return text + "</dl>";
}

std::string regressions(const RunRecord& record) {
  if (record.expectations.empty()) return "";
  const auto met = std::ranges::count_if(record.expectations, &Expectation::met);
  std::string text = fmt::format(
      "<h3>Regressions</h3><details{}><summary>{} of {} expectations of stored cases are "
      "met</summary>"
      "<ul>",
      met < std::ssize(record.expectations) ? " open" : "", grouped(met),
      grouped(std::ssize(record.expectations)));
  for (const Expectation& e : record.expectations) {
    text += fmt::format("<li{}>{}: {} {} {}{}", e.met ? "" : " class=\"bad\"", html(e.file),
                        html(e.implementation), html(e.property), html(e.verdict),
                        e.met ? "" : ", which is not what the case says");
  }
  return text + "</ul></details>";
}

std::string time(const RunRecord& record) {
  if (record.timings.empty()) return "";
  std::string text =
      "<h3>Time</h3><p>Checks included; no measure of speed.</p><figure class=\"chart\" "
      "id=\"chart-time\" hidden></figure><details><summary>By implementation and dtype</summary>"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Time\"><table "
      "class=\"counts numeric\"><thead><tr><th scope=\"col\">Implementation<th "
      "scope=\"col\">loss<th "
      "scope=\"col\">dtype<th scope=\"col\">cases<th scope=\"col\">calls<th scope=\"col\">seconds"
      "</thead>";
  for (const Timing& t : record.timings) {
    text += fmt::format("<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}<td>{}<td>{:.2f}",
                        html(t.implementation), html(t.loss), html(t.dtype), grouped(t.cases),
                        grouped(t.calls), t.seconds);
  }
  return text + "</table></div></details>";
}

std::string list(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("<h3>{}</h3><ul>", title);
  for (const std::string& line : lines) text += "<li><code>" + html(line) + "</code>";
  return text + "</ul>";
}

std::string idle(const RunRecord& record) {
  std::vector<std::string> mended, unfit;
  for (const UnfitCases& u : record.unfit) unfit.push_back(unfit_line(u));
  for (const Mended& m : record.mended) mended.push_back(mended_line(m));
  return list("Stored, and not asked", unfit) +
         list("Found before, and no longer so when asked again", mended) +
         list("Waivers that nothing needs any more", record.idle_waivers) +
         list("Accepted, and fits nothing that exists", record.misfits);
}

}  // namespace

std::string run_part(const RunRecord& record) {
  return "<div class=\"sides\"><div>" + request(record) + "</div><div>" + environment(record) +
         "</div></div>\n" + glossary(record) + regressions(record) + idle(record) + time(record) +
         "\n";
}

}  // namespace lossgate::report
