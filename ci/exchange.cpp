// SPDX-License-Identifier: Apache-2.0
#include "ci/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ci/candidates.h"
#include "ci/elsewhere.h"
#include "ci/settling.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

/// Cases that show each pair of numbers, and the fewest that prove something.
constexpr int kShown = 2, kFewest = 4;

/// Those that stay at one number, of a kind of which others may take it.
std::vector<const Option*> options_at_one_number(const Interview& interview) {
  std::vector<const Option*> options;
  for (const std::string& name : interview.greeting.options) {
    const Option& option = *interview.loss->signature.find_option(name);
    const OptionValue* kept = find_value(interview.subject.options, name);
    const bool number = option.kind == Option::Kind::real || option.kind == Option::Kind::integer;
    if (number && kept && std::holds_alternative<double>(*kept)) options.push_back(&option);
  }
  return options;
}

/// What either may be told.
std::vector<double> numbers_of(const Interview& interview, const Option& one, const Option& other) {
  std::vector<double> numbers;
  for (const Option* option : {&one, &other}) {
    const OptionValue& kept = *find_value(interview.subject.options, option->name);
    std::vector<OptionValue> values = alternatives(*option, kept);
    values.push_back(kept);
    for (const OptionValue& value : values) {
      const double* number = std::get_if<double>(&value);
      if (!number || std::ranges::find(numbers, *number) != numbers.end()) continue;
      const bool both =
          *number >= std::max(one.low, other.low) && *number <= std::min(one.high, other.high);
      if (both) numbers.push_back(*number);
    }
  }
  return numbers;
}

/// Whether it is the formula with each for the other, wherever the two can be told apart.
bool are_exchanged(Function& function, const Interview& interview, const Option& one,
                   const Option& other) {
  const Formula& formula = interview.formula;
  const std::vector<Case> cases = right_cases(interview);
  const std::vector<double> numbers = numbers_of(interview, one, other);
  int told_apart = 0;
  const auto agrees = [&](double first, double second) {
    int shown = 0;
    for (const Case& c : cases) {
      Candidate told = interview.best().candidate;
      told.reduction = c.spec.reduction;
      Candidate crossed = told;
      set_value(told.options, one.name, first), set_value(told.options, other.name, second);
      set_value(crossed.options, one.name, second), set_value(crossed.options, other.name, first);
      if (!Formula::differ(formula.values(c, told), formula.values(c, crossed))) continue;
      Case asked = c;
      tell(interview, asked, one.name, first);
      tell(interview, asked, other.name, second);
      const auto probe = ask(function, interview, std::move(asked));
      if (!probe) continue;  // it does not compute such
      if (!formula(*probe, crossed).rounded) return false;
      ++told_apart;
      if (++shown == kShown) break;
    }
    return true;
  };
  for (const double first : numbers) {
    for (const double second : numbers) {
      if (first != second && !agrees(first, second)) return false;
    }
  }
  return told_apart >= kFewest;
}

/// Whoever tells it neither gets both the wrong way round, unless they are the same.
std::string of_defaults(const Interview& interview, const Option& one, const Option& other) {
  const OptionValue* first = find_value(interview.greeting.defaults, one.name);
  const OptionValue* second = find_value(interview.greeting.defaults, other.name);
  if (!first || !second || *first == *second) return "";
  return fmt::format("; whoever leaves them at its own defaults of {} and {} gets another formula",
                     report::option_text(*first), report::option_text(*second));
}

}  // namespace

std::vector<std::string> free_exchanged_options(Function& function, Interview& interview) {
  std::vector<std::string> said;
  auto left = options_at_one_number(interview);
  while (!left.empty()) {
    const Option& one = *left.back();
    left.pop_back();
    const auto other = std::ranges::find_if(left, [&](const Option* option) {
      return option->kind == one.kind && are_exchanged(function, interview, *option, one);
    });
    if (other == left.end()) continue;
    said.push_back(fmt::format("{0} and {1} are exchanged: it takes {2} for {1} and {3} for {0}{4}",
                               (*other)->name, one.name, parameter_of(interview, (*other)->name),
                               parameter_of(interview, one.name),
                               of_defaults(interview, **other, one)));
    std::erase_if(interview.subject.options, [&](const auto& option) {
      return option.first == one.name || option.first == (*other)->name;
    });
    left.erase(other);
  }
  return said;
}

}  // namespace lossgate::ci
