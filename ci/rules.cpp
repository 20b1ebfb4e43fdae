// SPDX-License-Identifier: Apache-2.0
#include "ci/rules.h"

namespace lossgate::ci {
namespace {

// "B4" if a rule starts here.
std::string number_at(std::string_view line) {
  if (!line.starts_with("**") || line.size() < 5 || line[2] < 'A' || line[2] > 'Z') return "";
  const std::size_t end = line.find_first_not_of("0123456789", 3);
  if (end == 3 || end == std::string_view::npos || line[end] != '.') return "";
  return std::string(line.substr(2, end - 2));
}

// Calls visit(line) for every line, its end left out.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::vector<std::string> rule_numbers(std::string_view text) {
  std::vector<std::string> numbers;
  for_each_line(text, [&](std::string_view line) {
    const std::string number = number_at(line);
    if (!number.empty()) numbers.push_back(number);
  });
  return numbers;
}

std::optional<std::string> find_rule(std::string_view text, std::string_view number) {
  std::string rule;
  bool inside = false;
  for_each_line(text, [&](std::string_view line) {
    if (!number_at(line).empty() || line.starts_with("#"))
      inside = !number.empty() && number_at(line) == number;
    if (inside) rule += std::string(line) + "\n";
  });
  if (rule.empty()) return std::nullopt;
  while (rule.ends_with("\n\n")) rule.pop_back();
  return rule;
}

}  // namespace lossgate::ci
