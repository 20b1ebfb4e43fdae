// SPDX-License-Identifier: Apache-2.0
#include "ci/elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ci/candidates.h"
#include "ci/scale_recognition.h"
#include "ci/settling.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

bool is_finite(const Values& values) {
  return std::ranges::all_of(values, [](const std::vector<double>& entries) {
    return std::ranges::all_of(entries, [](double entry) { return std::isfinite(entry); });
  });
}

/// What it computed where the option stood at one value.
struct There {
  std::vector<Probe> probes;
  bool right = true;     ///< in all of these
  bool tells = false;    ///< whether the formula is another in some than where the option stays
  bool raises = false;   ///< in some case, as it may
  bool numbers = false;  ///< in one that is not
  double factor = 0.0;   ///< answers = factor x formula in all, or 0
};

Candidate asked_as(const Interview& interview, const Probe& probe) {
  Candidate candidate = interview.best().candidate;
  candidate.reduction = probe.c.spec.reduction;
  return candidate;
}

There there(Function& function, const Interview& interview, const std::string& option,
            const OptionValue& value) {
  There result;
  std::vector<double> factors;
  for (const Case& c : right_cases(interview)) {
    Case told = c;
    tell(interview, told, option, value);
    auto probe = ask(function, interview, std::move(told));
    result.raises = result.raises || (probe && !probe->answer);
    if (!probe || !probe->answer) continue;
    const Candidate candidate = asked_as(interview, *probe);
    result.tells = result.tells || Formula::differ(interview.formula.values(c, candidate),
                                                   interview.formula.values(probe->c, candidate));
    const Closeness close = interview.formula(*probe, candidate);
    if (!close.rounded) {
      result.right = false;
      result.numbers = result.numbers || is_finite(*probe->answer);
    }
    // Of nothing but rounding any factor is right.
    if (!close.rounded || constant({close.factor, 1.0}) != 0.0) factors.push_back(close.factor);
    result.probes.push_back(std::move(*probe));
  }
  result.factor = constant(factors);
  return result;
}

/// Whether it is the formula with an option that it is not told at the same value: one parameter
/// stands for both, and the other's name does not say so.
bool stands_for_another(const Interview& interview, const There& answers, const Option& option,
                        const OptionValue& value) {
  return std::ranges::any_of(interview.untold(), [&](const std::string& name) {
    const Option& other = *interview.loss->signature.find_option(name);
    if (other.kind != option.kind || !accepts(other, value)) return false;
    return std::ranges::all_of(answers.probes, [&](const Probe& probe) {
      Candidate candidate = asked_as(interview, probe);
      set_value(candidate.options, name, value);
      return interview.formula(probe, candidate).rounded;
    });
  });
}

/// Its own default first, then what lies within its range: there a formula is as plain as where it
/// was found, and the ends are for those that it is right at.
std::vector<OptionValue> values_of(const Interview& interview, const Option& option,
                                   const OptionValue& kept) {
  std::vector<OptionValue> values;
  const auto put = [&](const OptionValue& value) {
    const bool known = value == kept || std::ranges::find(values, value) != values.end();
    if (!known && accepts(option, value)) values.push_back(value);
  };
  const OptionValue* own = find_value(interview.greeting.defaults, option.name);
  if (own) put(*own);
  if (report::option_text(kept) == impl::kAnyNumber) return values;
  for (const OptionValue& value : alternatives(option, kept)) put(value);
  if (option.kind == Option::Kind::real) put(option.low), put(option.high);
  return values;
}

/// Which powers of an option its values scale the formula by.
class Powers {
 public:
  void add(int power) { ++count_[power]; }

  /// One and the same at several values, and not the square, which distillation has by convention.
  bool are_a_slip() const {
    return count_.size() == 1 && count_.begin()->second > 1 && count_.begin()->first != 0 &&
           count_.begin()->first != 2;
  }

 private:
  std::map<int, int> count_;
};

/// A word may be one that it does not know, none may stand for a number, and an end be for limits.
bool shows_a_fault(const Option& option, const OptionValue& value) {
  if (option.kind == Option::Kind::flag) return true;
  const double* number = std::get_if<double>(&value);
  return number && *number > option.low && *number < option.high;
}

/// "0, 0.5 or 1".
std::string listed(const std::vector<OptionValue>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + report::option_text(values[i]);
  }
  return text;
}

}  // namespace

double factor_at(Function& function, const Interview& interview, const std::string& option,
                 const OptionValue& value) {
  return there(function, interview, option, value).factor;
}

std::string right_at(const OptionValue& kept, const Elsewhere& elsewhere) {
  if (report::option_text(kept) == impl::kAnyNumber) return "a number";
  std::vector<OptionValue> values = elsewhere.right;
  values.push_back(kept);
  std::ranges::sort(values, {}, [](const OptionValue& value) {
    const double* number = std::get_if<double>(&value);
    return std::pair(number ? *number : 0.0, report::option_text(value));
  });
  return listed(values);
}

std::string parameter_of(const Interview& interview, const std::string& option) {
  const std::string source = "option:" + option;
  for (const auto& [parameter, from] : interview.greeting.arguments) {
    if (from == source || from.starts_with(source + " as ")) return parameter;
  }
  return option;
}

Elsewhere elsewhere(Function& function, const Interview& interview, const Option& option) {
  const OptionValue& kept = *find_value(interview.subject.options, option.name);
  const OptionValue* own = find_value(interview.greeting.defaults, option.name);
  Elsewhere found;
  bool wrong_in_numbers = false;
  Powers powers;
  for (const OptionValue& value : values_of(interview, option, kept)) {
    const There answers = there(function, interview, option.name, value);
    found.raises = found.raises || answers.raises;
    if (answers.right) {
      if (answers.tells) found.right.push_back(value);
      continue;
    }
    const bool by_itself = own && *own == value;
    if (!found.other) found.other = {value, by_itself, answers.factor};
    if (answers.factor != 0.0) powers.add(power_of(answers.factor, value));
    const bool known = by_itself || (answers.numbers && shows_a_fault(option, value));
    if (answers.factor != 0.0 || !known) continue;
    if (stands_for_another(interview, answers, option, value)) continue;
    if (by_itself) {
      found.fault = fmt::format("whoever leaves {} at its own default of {} gets another formula",
                                option.name, report::option_text(value));
    }
    wrong_in_numbers = true;
  }
  if (!found.fault.empty()) return found;
  const std::string parameter = parameter_of(interview, option.name);
  const std::string which =
      parameter + " is a parameter" +
      (parameter == option.name ? "" : ", the " + option.name + " of the loss") + ", and ";
  if (wrong_in_numbers) {
    found.fault = which + "any other value than " + right_at(kept, found) + " is another formula";
  } else if (powers.are_a_slip()) {
    found.fault =
        fmt::format("{}the loss is off by a power of it: at {} it is {:.6g} times the formula",
                    which, report::option_text(found.other->value), found.other->factor);
  }
  return found;
}

}  // namespace lossgate::ci
