// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

using properties::Verdict;

/// What a property said of an implementation, over all dtypes.
struct Square {
  std::array<std::int64_t, 5> verdicts{};
  std::map<std::string, std::int64_t> reasons;
  double worst = 0.0;
  std::string worst_case, worst_dtype;
  std::vector<std::string> violated_in;

  std::int64_t of(Verdict verdict) const { return verdicts[static_cast<std::size_t>(verdict)]; }
};

using Squares = std::map<std::string, Square>;  // by property

Squares squares_of(const RunRecord& record, const Subject& subject) {
  Squares squares;
  for (const Cell& c : record.cells) {
    if (c.loss != subject.loss || c.implementation != subject.name) continue;
    Square& square = squares[c.property];
    for (std::size_t i = 0; i < 5; ++i) square.verdicts[i] += c.verdicts[i];
    for (const auto& [reason, count] : c.reasons) square.reasons[reason] += count;
    if (c.worst_ratio > square.worst) {
      square.worst = c.worst_ratio;
      square.worst_case = c.worst_case;
      square.worst_dtype = c.dtype;
    }
    if (c.verdicts[static_cast<std::size_t>(Verdict::violated)] > 0) {
      square.violated_in.push_back(c.dtype);
    }
  }
  return squares;
}

struct Sign {
  Verdict verdict;
  const char* letter;  ///< of the style
  const char* mark;
};

// The verdict that matters most stands for all.
constexpr Sign kSigns[] = {{Verdict::violated, "v", "✗"},
                           {Verdict::held, "h", "✓"},
                           {Verdict::note, "n", "∗"},
                           {Verdict::vacuous, "o", "○"},
                           {Verdict::skipped, "s", "–"}};

std::string square_html(const Square* square, const std::string& row) {
  if (!square) return "<td>";
  for (const Sign& sign : kSigns) {
    const std::int64_t count = square->of(sign.verdict);
    if (count == 0) continue;
    if (sign.verdict == Verdict::violated) {
      return fmt::format(
          "<td class=\"v\"><a href=\"#i-{}\">{}<span class=\"sr\"> violated</span></a>", row,
          grouped(count));
    }
    return fmt::format("<td class=\"{}\">{}<span class=\"sr\">{}</span>", sign.letter, sign.mark,
                       name(sign.verdict));
  }
  return "<td>";
}

std::string legend() {
  std::string text = "<ul class=\"legend\">";
  constexpr const char* kMeanings[] = {
      "violated, in so many cases", "held", "note: outside a declared contract, or accuracy only",
      "vacuous: no case could have shown otherwise", "skipped, with its reason"};
  for (std::size_t i = 0; i < std::size(kSigns); ++i) {
    text += fmt::format("<li><span class=\"swatch {}\">{}</span> {}", kSigns[i].letter,
                        kSigns[i].mark, kMeanings[i]);
  }
  return text + "</ul>\n";
}

std::string row_of(const Subject& subject) { return anchor(subject.loss + "|" + subject.name); }

// Those that were asked of somebody; does_not_crash has cells where something crashed alone.
std::vector<PropertyEntry> columns_of(const RunRecord& record) {
  std::vector<PropertyEntry> columns;
  for (const PropertyEntry& p : record.properties) {
    if (std::ranges::find(record.cells, p.name, &Cell::property) != record.cells.end()) {
      columns.push_back(p);
    }
  }
  return columns;
}

std::string matrix(const RunRecord& record) {
  const std::vector<PropertyEntry> columns = columns_of(record);
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Verdicts by "
      "implementation "
      "and property\"><table class=\"board\"><thead><tr><th scope=\"col\">Implementation";
  for (const PropertyEntry& p : columns) {
    text += fmt::format("<th scope=\"col\" class=\"turned\"><a href=\"#p-{}\">{}</a>",
                        anchor(p.name), html(p.name));
  }
  text += "</thead>\n";
  std::string loss;
  for (const Subject& subject : record.subjects) {
    if (subject.faulty()) continue;
    if (subject.loss != loss) {
      text += fmt::format(
          "<tbody><tr class=\"loss\"><th colspan=\"{}\" scope=\"colgroup\"><span>{}</span>",
          columns.size() + 1, html(loss = subject.loss));
    }
    const Squares squares = squares_of(record, subject);
    const std::string row = row_of(subject);
    text +=
        fmt::format("\n<tr><th scope=\"row\"><a href=\"#i-{}\">{}</a>", row, html(subject.name));
    for (const PropertyEntry& p : columns) {
      const auto found = squares.find(p.name);
      text += square_html(found == squares.end() ? nullptr : &found->second, row);
    }
  }
  return text + "</table></div>\n";
}

std::string reasons_of(const Square& square) {
  std::string text;
  for (const auto& [reason, count] : square.reasons) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", grouped(count), html(reason));
  }
  if (!square.violated_in.empty()) {
    text = fmt::format("violated in {}{}{}",
                       html(fmt::format("{}", fmt::join(square.violated_in, ", "))),
                       text.empty() ? "" : "; ", text);
  }
  return text;
}

std::string open_of(const RunRecord& record, const Subject& subject) {
  const std::string unjudged = unjudged_text(record, subject);
  std::string text = unjudged.empty() ? "" : ", not judged: " + html(unjudged);
  if (const std::string some = examined_text(record, subject); !some.empty()) {
    text += ", " + html(some);
  }
  for (const std::string& told : subject.never_told) text += ", never asked: " + html(told);
  return text;
}

std::string counts_of(const RunRecord& record, const Subject& subject) {
  const Squares squares = squares_of(record, subject);
  std::int64_t violated = 0;
  for (const auto& [property, square] : squares) violated += square.of(Verdict::violated) > 0;
  std::string text = fmt::format(
      "<details id=\"i-{}\"><summary><b>{}</b> <span class=\"quiet\">{}{}{}{}{}</span></summary>"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Counts of {}\">"
      "<table class=\"counts\"><thead><tr><th scope=\"col\">Property",
      row_of(subject), html(subject.name), html(subject.loss),
      subject.file.empty() ? "" : fmt::format(", {}:{}", html(subject.file), subject.line),
      violated ? fmt::format(", {} violated",
                             violated == 1 ? "1 property" : fmt::format("{} properties", violated))
               : "",
      subject.relaxed_by_contract
          ? fmt::format(", relaxed by contract: {}", grouped(subject.relaxed_by_contract))
          : "",
      open_of(record, subject), html(subject.name));
  for (const Verdict verdict : properties::kAllVerdicts) {
    text += fmt::format("<th scope=\"col\">{}", name(verdict));
  }
  text += "<th scope=\"col\">worst ratio<th scope=\"col\">reasons</thead>";
  for (const PropertyEntry& p : record.properties) {
    const auto found = squares.find(p.name);
    if (found == squares.end()) continue;
    const Square& square = found->second;
    text += fmt::format("<tr><th scope=\"row\">{}", html(p.name));
    for (const Verdict verdict : properties::kAllVerdicts) {
      const std::int64_t count = square.of(verdict);
      text += count ? fmt::format("<td{}>{}", verdict == Verdict::violated ? " class=\"v\"" : "",
                                  grouped(count))
                    : "<td>";
    }
    text += fmt::format("<td>{}<td>{}", square.worst_case.empty() ? "" : brief(square.worst),
                        reasons_of(square));
  }
  return text + "</table></div></details>\n";
}

}  // namespace

std::string board_part(const RunRecord& record) {
  if (record.subjects.empty()) return "";
  std::string text =
      legend() + matrix(record) + "<h3>Counts and reasons</h3>\n<div class=\"folds\">\n";
  for (const Subject& subject : record.subjects) {
    if (!subject.faulty()) text += counts_of(record, subject);
  }
  return text + "</div>\n";
}

}  // namespace lossgate::report
