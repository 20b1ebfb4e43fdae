// SPDX-License-Identifier: Apache-2.0
#include "ci/settling.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ci/candidates.h"
#include "ci/empty_trial.h"
#include "fuzz/choices.h"

namespace lossgate::ci {
namespace {

constexpr int kJoint = 128;
constexpr std::uint64_t kSeed = 21;

/// Whether it is asked, answers, and is wrong; a case that it does not compute says nothing.
/// Whoever rounds to f32 inside is within an f64's tolerance now and then, not always.
bool wrong(Function& function, const Interview& interview, const Case& c) {
  const auto probe = ask(function, interview, c);
  if (!probe) return false;
  Candidate candidate = interview.best().candidate;
  candidate.reduction = c.spec.reduction;
  return !interview.formula(*probe, candidate).rounded;
}

/// Every value from which an option could go wrong, on cases that show it.
std::vector<Case> cases_of_option(const Interview& interview, const std::vector<Case>& cases,
                                  const std::string& name, const OptionValue& now) {
  constexpr int kShown = 2;
  const Option& option = *interview.loss->signature.find_option(name);
  std::vector<Case> asked;
  for (const OptionValue& value : far_values(option, now)) {
    int shown = 0;
    for (const Case& c : cases) {
      Candidate plain = interview.best().candidate;
      plain.reduction = c.spec.reduction;
      Candidate other = plain;
      set_value(other.options, name, value);
      const Formula& formula = interview.formula;
      if (!Formula::differ(formula.values(c, plain), formula.values(c, other))) continue;
      asked.push_back(c);
      tell(interview, asked.back(), name, value);
      if (++shown == kShown) break;
    }
  }
  return asked;
}

/// All that are free at once, each at an end of its range as often as between.
std::vector<Case> joint_cases(const Interview& interview, const std::vector<Case>& cases,
                              const std::vector<std::string>& free) {
  std::vector<Case> drawn;
  fuzz::Choices choices(kSeed);
  for (int i = 0; i < kJoint; ++i) {
    Case& c = drawn.emplace_back(cases[static_cast<std::size_t>(i) % cases.size()]);
    for (const std::string& name : free) {
      const OptionValue& now = *c.spec.find(name);
      const auto values = far_values(*interview.loss->signature.find_option(name), now);
      if (!values.empty() && choices.sometimes(0.75)) {
        tell(interview, c, name, choices.one_of(std::span<const OptionValue>(values)));
      }
    }
  }
  return drawn;
}

/// Of options that are right alone, and not together, the one that mends most cases when it stays
/// where it was. One that may be none is the least loss.
std::size_t to_blame(Function& function, const Interview& interview,
                     const std::vector<Case>& failed, const std::vector<std::string>& free) {
  std::size_t worst = 0;
  std::pair<int, bool> most{-1, false};
  for (std::size_t i = 0; i < free.size(); ++i) {
    const int mended = static_cast<int>(std::ranges::count_if(failed, [&](Case c) {
      tell(interview, c, free[i], *find_value(interview.subject.options, free[i]));
      return !wrong(function, interview, c);
    }));
    const std::pair merit{mended, interview.loss->signature.find_option(free[i])->nullable};
    if (merit > most) worst = i, most = merit;
  }
  return worst;
}

/// Which of the others would mend all of these by itself.
std::vector<Choice> choices_beside(Function& function, const Interview& interview,
                                   const std::vector<Case>& failed,
                                   const std::vector<std::string>& free,
                                   const std::string& blamed) {
  std::vector<Choice> choices;
  for (const std::string& other : free) {
    const OptionValue& value = *find_value(interview.subject.options, other);
    const bool mends = other != blamed && std::ranges::none_of(failed, [&](Case c) {
                         tell(interview, c, other, value);
                         return wrong(function, interview, c);
                       });
    if (mends) choices.push_back({blamed, other, value});
  }
  return choices;
}

}  // namespace

std::vector<OptionValue> far_values(const Option& option, const OptionValue& now) {
  std::vector<OptionValue> values = alternatives(option, now);
  if (option.kind == Option::Kind::real) values.insert(values.end(), {option.low, option.high});
  return values;
}

void tell(const Interview& interview, Case& c, const std::string& option,
          const OptionValue& value) {
  c.spec.set(option, value);
  follow(interview.formula.signature(), c.spec);
}

std::vector<Case> right_cases(const Interview& interview) {
  std::vector<Case> cases;
  for (const Reduction reduction : interview.best().whole) {
    for (const Probe& probe : interview.probes(reduction)) {
      cases.push_back(probe.c);
      cases.back().spec.reduction = reduction;
    }
  }
  return cases;
}

std::vector<Choice> free_told_options(Function& function, Interview& interview) {
  OptionValues& told = interview.subject.options;
  const std::vector<Case> cases = right_cases(interview);
  std::vector<std::string> free, numbers;
  for (const auto& [name, value] : told) {
    auto failed = cases_of_option(interview, cases, name, value);
    const auto asked = failed.size();
    std::erase_if(failed, [&](const Case& c) { return !wrong(function, interview, c); });
    const bool none_alone = std::ranges::all_of(failed, [&, &option = name](const Case& c) {
      return std::holds_alternative<None>(*c.spec.find(option));
    });
    if (failed.empty()) free.push_back(name);
    if (none_alone && !failed.empty() && failed.size() < asked) numbers.push_back(name);
  }
  std::vector<Choice> choices;
  auto failed = joint_cases(interview, cases, free);
  while (!free.empty()) {
    std::erase_if(failed, [&](const Case& c) { return !wrong(function, interview, c); });
    if (failed.empty()) break;
    const std::size_t blamed = to_blame(function, interview, failed, free);
    if (choices.empty()) {
      choices = choices_beside(function, interview, failed, free, free[blamed]);
    }
    for (Case& c : failed) tell(interview, c, free[blamed], *find_value(told, free[blamed]));
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(blamed));
  }
  std::erase_if(told, [&](const auto& option) {
    return std::ranges::find(free, option.first) != free.end();
  });
  for (const std::string& name : numbers) set_value(told, name, std::string(impl::kAnyNumber));
  return choices;
}

EmptyRows empty_rows_of(Function& function, const Interview& interview) {
  for (const Case& c : right_cases(interview)) {
    const bool mean = c.spec.reduction == Reduction::sequence_mean ||
                      c.spec.reduction == Reduction::seq_mean_token_sum_norm;
    const auto emptied = mean ? with_empty_row(interview.formula.signature(), c) : std::nullopt;
    if (emptied && wrong(function, interview, *emptied)) return EmptyRows::counted;
  }
  return EmptyRows::skipped;
}

}  // namespace lossgate::ci
