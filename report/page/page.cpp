// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.h"

#include <fmt/format.h>

#include "report/board.h"
#include "report/page/assets.h"
#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

// A hash as a content-security policy has it.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < hex.size(); at += 6) {  // three bytes
    std::string part(hex.substr(at, 6));
    const std::size_t digits = (part.size() * 4 + 5) / 6;
    part.resize(6, '0');
    const unsigned long word = std::stoul(part, nullptr, 16);
    for (std::size_t i = 0; i < 4; ++i) {
      text += i < digits ? kDigits[word >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::string policy() {
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}' 'sha256-{}'; style-src 'sha256-{}'; img-src "
      "data:; base-uri 'none'; form-action 'none'",
      base64_of_hex(chart_library().sha256), base64_of_hex(script().sha256),
      base64_of_hex(style().sha256));
}

struct Part {
  const char* id;
  const char* title;
  std::string body;
};

std::string navigation(const std::vector<Part>& parts) {
  std::string text = "<nav aria-label=\"Parts of the page\"><ul>";
  for (const Part& part : parts) {
    if (!part.body.empty()) text += fmt::format("<li><a href=\"#{}\">{}</a>", part.id, part.title);
  }
  return text + "</ul></nav>\n";
}

}  // namespace

std::string heading(const std::string& id, const std::string& title) {
  return fmt::format("<h2><a href=\"#{}\">{}</a></h2>\n", id, title);
}

std::string page(const PageSource& source) {
  const RunRecord& record = source.record();
  const std::vector<Part> parts = {{"board", "Board", board_part(record)},
                                   {"findings", "Findings", findings_part(source)},
                                   {"releases", "Side by side", releases_part(source)},
                                   {"variants", "Faulty variants", kills_part(record)},
                                   {"ratios", "Error ratios", ratios_part(record)},
                                   {"splits", "Split bias", splits_part(record)},
                                   {"coverage", "Coverage", coverage_part(record)},
                                   {"campaign", "Campaign", campaign_part(record)},
                                   {"benchmarks", "Benchmarks", benchmarks_part(source)},
                                   {"run", "The run", run_part(record)}};
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{} · lossgate</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#findings\">To the findings</a>\n",
      policy(), html(verdict_line(record)), style().text);
  text += verdict_part(source) + navigation(parts) + "<main>\n";
  for (const Part& part : parts) {
    if (part.body.empty()) continue;
    text += fmt::format("<section id=\"{}\">\n{}{}</section>\n", part.id,
                        heading(part.id, part.title), part.body);
  }
  text += fmt::format(
      "</main>\n<footer><p>lossgate {} ({}). The page holds everything that it shows; it loads "
      "nothing.</p></footer>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
      html(record.version), html(record.commit), page_data(source), chart_library().text,
      script().text);
  return text;
}

}  // namespace lossgate::report
