// SPDX-License-Identifier: Apache-2.0
#include "report/reservations.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace lossgate::report {
namespace {

/// A contract must not turn red into a green that nobody notices.
std::string relaxed(const RunRecord& record) {
  std::string text;
  for (const Subject& s : record.subjects) {
    if (s.faulty() || (s.relaxed_by_contract == 0 && s.never_asked.empty())) continue;
    text += fmt::format("\n  {}: relaxed by contract: {}", s.name, s.relaxed_by_contract);
    if (!s.never_asked.empty()) text += "; never asked: " + never_asked_text(record, s);
    if (!s.never_triggered.empty()) {
      text += fmt::format("; never triggered: {}", fmt::join(s.never_triggered, ", "));
    }
  }
  return text.empty() ? "" : text + "\n";
}

/// A line of each sound subject of which the text says something.
std::string lines_of_sound(const RunRecord& record, std::string_view head,
                           std::string (*text_of)(const RunRecord&, const Subject&)) {
  std::string text;
  for (const Subject& s : record.subjects) {
    const std::string some = s.faulty() ? "" : text_of(record, s);
    if (!some.empty()) text += fmt::format("\n  {}: {}{}", s.name, head, some);
  }
  return text.empty() ? "" : text + "\n";
}

/// Nor must what was asked, and no verdict came of.
std::string unjudged(const RunRecord& record) {
  return lines_of_sound(record, "not judged: ", unjudged_text);
}

/// Findings count fewer cases than the board where the same is violated over and over.
std::string examined(const RunRecord& record) { return lines_of_sound(record, "", examined_text); }

/// Nor must what its file never asks it, and whoever leaves a parameter alone gets.
std::string untold(const RunRecord& record) {
  std::string text;
  for (const Subject& s : record.subjects) {
    for (const std::string& told : s.never_told) {
      text += fmt::format("\n  {}: never asked: {}", s.name, told);
    }
  }
  return text.empty() ? "" : text + "\n";
}

/// Nor must what a share leaves to others.
std::string elsewhere(const RunRecord& record) {
  std::string text;
  for (const std::string& line : elsewhere_lines(record)) text += "\n  " + line;
  return text.empty() ? "" : text + "\n";
}

/// Where the function itself stands for a reference, what its f64 does not bear out is no finding,
/// and must not be overlooked.
std::string advisory(const RunRecord& record) {
  std::string text;
  for (const Subject& s : record.subjects) {
    std::map<std::string, std::int64_t> notes;
    for (const Cell& c : record.cells) {
      if (s.faulty() || c.loss != s.loss || c.implementation != s.name) continue;
      for (const auto& [reason, count] : c.reasons) {
        if (reason.starts_with("note: advisory: ")) notes[c.property] += count;
      }
    }
    if (notes.empty()) continue;
    text += fmt::format("\n  {}: its own f64 does not bear out, which is no finding: ", s.name);
    const char* comma = "";
    for (const auto& [property, count] : notes) {
      text += fmt::format("{}{} ({})", std::exchange(comma, ", "), property, count);
    }
  }
  return text.empty() ? "" : text + "\n";
}

}  // namespace

std::string reservations(const RunRecord& record) {
  return examined(record) + relaxed(record) + unjudged(record) + untold(record) +
         elsewhere(record) + advisory(record);
}

}  // namespace lossgate::report
