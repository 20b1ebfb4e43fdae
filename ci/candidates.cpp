// SPDX-License-Identifier: Apache-2.0
#include "ci/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/case_facts.h"

namespace lossgate::ci {
namespace {

/// Beyond this many choices the last options keep their defaults.
constexpr std::size_t kMostCombinations = 4000;

std::vector<OptionValue> likely_values(const LossSignature& loss, const Option& option) {
  std::vector<OptionValue> values;
  if (option.nullable) values.emplace_back(None{});
  switch (option.kind) {
    case Option::Kind::flag:
      return {OptionValue(0.0), OptionValue(1.0)};
    case Option::Kind::choice:
      for (const std::string& choice : option.choices) values.emplace_back(choice);
      return values;
    default:
      if (option.name == loss.coefficient && option.low <= 0.0) values.emplace_back(0.0);
      if (!std::holds_alternative<None>(option.standard)) values.push_back(option.standard);
      return values;
  }
}

void offer(Nearest& best, const OptionValue& other, const Distance& distance) {
  if (const double away = distance(other); away < best.distance) best = {other, away};
}

/// The numbers that a search begins with, by size where the range spans orders of magnitude.
std::vector<double> spread(const Option& option) {
  constexpr int kSteps = 24;
  const bool by_size = option.low > 0.0 && option.high > 10.0 * option.low;
  std::vector<double> numbers;
  for (int i = 0; i <= kSteps; ++i) {
    const double share = static_cast<double>(i) / kSteps;
    double number = by_size ? option.low * std::pow(option.high / option.low, share)
                            : option.low + (option.high - option.low) * share;
    if (option.kind == Option::Kind::integer) number = std::round(number);
    if (numbers.empty() || number > numbers.back()) numbers.push_back(number);
  }
  return numbers;
}

/// Between two numbers by golden sections, until they are `apart` from each other.
void refine(const Option& option, double low, double high, double apart, Nearest& best,
            const Distance& distance) {
  const double kGolden = (std::sqrt(5.0) - 1.0) / 2.0;
  const bool whole = option.kind == Option::Kind::integer;
  const auto within = [&](double share) {
    const double number = low + (high - low) * share;
    return whole ? std::round(number) : number;
  };
  const auto at = [&](double number) {
    const double away = distance(number);
    if (away < best.distance) best = {number, away};
    return away;
  };
  double left = within(1.0 - kGolden), right = within(kGolden);
  double at_left = at(left), at_right = at(right);
  while (high - low > (whole ? 3.0 : apart)) {
    if (at_left <= at_right) {
      high = right, right = left, at_right = at_left;
      at_left = at(left = within(1.0 - kGolden));
    } else {
      low = left, left = right, at_left = at_right;
      at_right = at(right = within(kGolden));
    }
  }
  for (double number = low; whole && number <= high; ++number) offer(best, number, distance);
}

/// As few digits as do no harm: of numbers that are no further `apart` than a search looks, chance
/// tells which is nearer.
void shorten(Nearest& best, double apart, const Distance& distance) {
  const double* number = std::get_if<double>(&best.value);
  if (!number) return;
  for (int digits = 1; digits <= 6; ++digits) {
    const double rounded = to_digits(*number, digits);
    const double away = distance(rounded);
    if (away <= best.distance + 1e-9 || std::fabs(rounded - *number) <= apart) {
      best = {rounded, away};
      return;
    }
  }
}

}  // namespace

std::vector<OptionValues> combinations(const LossSignature& loss,
                                       const std::vector<std::string>& options) {
  std::vector<OptionValues> all(1);
  for (const Option& option : loss.options) {
    if (std::ranges::find(options, option.name) == options.end()) continue;
    std::vector<OptionValue> values = likely_values(loss, option);
    if (all.size() * values.size() > kMostCombinations) values = {option.standard};
    std::vector<OptionValues> more;
    for (const OptionValue& value : values) {
      for (OptionValues combination : all) {
        combination.emplace_back(option.name, value);
        more.push_back(std::move(combination));
      }
    }
    all = std::move(more);
  }
  return all;
}

std::vector<OptionValue> usual_values(const LossSignature& loss, const Option& option) {
  std::vector<OptionValue> values = likely_values(loss, option);
  values.insert(values.end(), option.usual.begin(), option.usual.end());
  return values;
}

std::vector<OptionValue> alternatives(const Option& option, const OptionValue& value) {
  std::vector<OptionValue> others;
  if (option.nullable) others.emplace_back(None{});
  for (const std::string& choice : option.choices) others.emplace_back(choice);
  if (option.kind == Option::Kind::flag) others = {OptionValue(0.0), OptionValue(1.0)};
  if (option.kind == Option::Kind::real || option.kind == Option::Kind::integer) {
    const double* standard = std::get_if<double>(&option.standard);
    const double middle = standard && *standard != 0.0 ? *standard
                          : option.low > 0.0           ? 2.0 * option.low
                          : option.high > 0.0          ? 0.5 * option.high
                                                       : option.low;
    for (const double factor : {1.0, 0.5, 2.0}) {
      const double number = std::clamp(middle * factor, option.low, option.high);
      others.emplace_back(option.kind == Option::Kind::integer ? std::round(number) : number);
    }
  }
  std::vector<OptionValue> distinct;
  for (OptionValue& other : others) {
    if (other != value && std::ranges::find(distinct, other) == distinct.end()) {
      distinct.push_back(std::move(other));
    }
  }
  return distinct;
}

Nearest nearest_value(const Option& option, const OptionValue& value, const Distance& distance) {
  Nearest best{value, distance(value)};
  if (option.nullable) offer(best, None{}, distance);
  if (option.kind == Option::Kind::choice || option.kind == Option::Kind::flag) {
    for (const OptionValue& other : alternatives(option, value)) offer(best, other, distance);
    return best;
  }
  for (const double number : option.usual) offer(best, number, distance);
  const std::vector<double> numbers = spread(option);
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double away = distance(numbers[i]);
    if (away < least) nearest = i, least = away;
    most = std::max(most, away);
  }
  if (least < best.distance) best = {numbers[nearest], least};
  if (most - least <= 1e-12) return best;  // these answers do not depend on it
  const double low = numbers[nearest > 0 ? nearest - 1 : 0];
  const double high = numbers[std::min(nearest + 1, numbers.size() - 1)];
  refine(option, low, high, 0.02 * (high - low), best, distance);
  return best;
}

Nearest polished(const Option& option, const Nearest& rough, const Distance& distance) {
  const double* number = std::get_if<double>(&rough.value);
  if (!number || option.kind == Option::Kind::flag) return rough;
  Nearest best = rough;
  const double middle = *number, reach = 0.05 * std::max(std::fabs(middle), 1e-3);
  const double apart = 1e-12 * std::max(std::fabs(middle), 1e-3);
  if (option.kind == Option::Kind::real) {
    refine(option, std::max(option.low, middle - reach), std::min(option.high, middle + reach),
           apart, best, distance);
  }
  shorten(best, apart, distance);
  return best;
}

bool is_read(const LossSignature& loss, const std::vector<Reduction>& reductions,
             const std::string& option) {
  const auto divides = [&](Reduction r) { return properties::divisor_option(r) == option; };
  return std::ranges::none_of(loss.reductions, divides) || std::ranges::any_of(reductions, divides);
}

bool accepts(const Option& option, const OptionValue& value) {
  if (std::holds_alternative<None>(value)) return option.nullable;
  const std::string* word = std::get_if<std::string>(&value);
  if (word) return std::ranges::find(option.choices, *word) != option.choices.end();
  const double number = std::get<double>(value);
  return option.kind != Option::Kind::choice && number >= option.low && number <= option.high;
}

double to_digits(double number, int digits) {
  return std::stod(fmt::format("{:.{}g}", number, digits));
}

const OptionValue* find_told(const OptionValues& values, const std::string& source) {
  if (!source.starts_with("option:")) return nullptr;
  return find_value(values, source.substr(7, source.find(" as ") - 7));
}

const OptionValue* find_value(const OptionValues& values, const std::string& option) {
  const auto found = std::ranges::find(values, option, &OptionValues::value_type::first);
  return found == values.end() ? nullptr : &found->second;
}

void set_value(OptionValues& values, const std::string& option, OptionValue value) {
  const auto found = std::ranges::find(values, option, &OptionValues::value_type::first);
  if (found != values.end()) {
    found->second = std::move(value);
  } else {
    values.emplace_back(option, std::move(value));
  }
}

}  // namespace lossgate::ci
