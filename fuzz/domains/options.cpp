// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/options.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lossgate::fuzz {
namespace {

enum class Number { standard, none, usual, near_standard, within, low_end, high_end };

constexpr Share<Number> kNumbers[] = {
    {Number::standard, {17, 8, 4}},     {Number::usual, {2, 2, 1}},
    {Number::near_standard, {1, 1, 1}}, {Number::within, {1, 2, 2}},
    {Number::low_end, {0, 2, 3}},       {Number::high_end, {0, 2, 3}},
};

/// Of a limit, which is about as often off as on.
constexpr Share<Number> kLimits[] = {
    {Number::standard, {16, 3, 4}},     {Number::none, {1, 7, 3}},   {Number::usual, {2, 2, 1}},
    {Number::near_standard, {1, 1, 1}}, {Number::within, {1, 2, 2}}, {Number::low_end, {0, 2, 3}},
    {Number::high_end, {0, 1, 3}},
};

/// A thousandth of the range, so that a printed case stays readable; by size where the range spans
/// several orders of magnitude, and now and then where it begins at 0. A share is now and then as
/// near to all as to nothing.
double within(double low, double high, Choices& choices) {
  const bool share = low == 0.0 && high == 1.0;
  if (share && choices.sometimes(0.25)) return 1.0 - within(0.0, 0x1p-4, choices);
  const bool from_zero = low == 0.0 && high > 0.0 && choices.sometimes(0.5);
  if (from_zero || (low > 0.0 && high / low > 1000.0)) {
    const double drawn = choices.log_uniform(from_zero ? high * 0x1p-24 : low, high);
    const double unit = std::ldexp(1.0, std::ilogb(drawn) - 8);
    return std::clamp(std::round(drawn / unit) * unit, low, high);
  }
  return std::clamp(low + (high - low) * (static_cast<double>(choices.integer(0, 1000)) / 1000.0),
                    low, high);
}

/// An end that is the default is drawn often enough as such.
Number drawn_as(Number kind, const Option& option) {
  const double* standard = std::get_if<double>(&option.standard);
  const bool low = kind == Number::low_end && standard && *standard == option.low;
  const bool high = kind == Number::high_end && standard && *standard == option.high;
  return low || high ? Number::within : kind;
}

/// Beyond what f16 counts to a whole number is odd, as no narrow format holds it.
double whole(double value) {
  const double nearest = std::round(value);
  const bool even = std::fmod(nearest, 2.0) == 0.0;
  return nearest > 2048.0 && even ? nearest + 1.0 : nearest;
}

/// The number as the option takes it.
OptionValue accepted(const Option& option, double value) {
  if (option.kind == Option::Kind::integer) value = whole(value);
  return std::isfinite(value) ? OptionValue(std::clamp(value, option.low, option.high))
                              : option.standard;
}

/// What a flag is by default not.
double other_flag(const Option& option) {
  const double* standard = std::get_if<double>(&option.standard);
  return standard && *standard == option.low ? option.high : option.low;
}

OptionValue draw_number(const Option& option, Temper temper, Choices& choices) {
  const Number kind = drawn_as(
      option.nullable ? pick(kLimits, temper, choices) : pick(kNumbers, temper, choices), option);
  const double* standard = std::get_if<double>(&option.standard);
  double value = 0.0;
  switch (kind) {
    case Number::standard:
      return option.standard;
    case Number::none:
      return None{};
    case Number::usual:
      if (!option.usual.empty()) {
        value = choices.one_of(std::span<const double>(option.usual));
        break;
      }
      [[fallthrough]];
    case Number::near_standard: {
      constexpr double kFactors[] = {0.5, 0.75, 1.5, 2.0};
      if (standard && *standard != 0.0) {
        value = *standard * choices.one_of(kFactors);
        break;
      }
      [[fallthrough]];
    }
    case Number::within:
      value = within(option.low, option.high, choices);
      break;
    case Number::low_end:
      value = option.low;
      break;
    case Number::high_end:
      value = option.high;
      break;
  }
  return accepted(option, value);
}

/// The default in half of the cases, in a plain one mostly: one draw, so that cases of a turn deal
/// out what comes of it.
OptionValue draw_flag(const Option& option, Temper temper, Choices& choices) {
  const bool turned = choices.sometimes(temper == Temper::plain ? 0.125 : 0.5);
  return turned ? OptionValue(other_flag(option)) : option.standard;
}

OptionValue draw_choice(const Option& option, Temper temper, Choices& choices) {
  if (option.choices.empty()) return option.standard;
  const auto count = static_cast<int>(option.choices.size());
  std::vector<int> weights(option.choices.size(), temper == Temper::plain ? 1 : 3);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (OptionValue(option.choices[i]) == option.standard) {
      weights[i] += temper == Temper::plain ? 3 * count : count;
    }
  }
  if (option.nullable && choices.sometimes(0.1)) return None{};
  return option.choices[choices.weighted(weights)];
}

OptionValue other_choice(const Option& option, Choices& choices) {
  std::vector<std::string> others;
  for (const std::string& choice : option.choices) {
    if (OptionValue(choice) != option.standard) others.push_back(choice);
  }
  if (others.empty()) return option.standard;
  return choices.one_of(std::span<const std::string>(others));
}

OptionValue other_value(const Option& option, Choices& choices) {
  if (option.kind == Option::Kind::choice) return other_choice(option, choices);
  if (option.kind == Option::Kind::flag) return other_flag(option);
  const double* standard = std::get_if<double>(&option.standard);
  if (option.nullable && standard && choices.sometimes(0.25)) return None{};
  if (!option.usual.empty() && choices.sometimes(0.5)) {
    return accepted(option, choices.one_of(std::span<const double>(option.usual)));
  }
  constexpr int kWeights[] = {2, 1, 1};
  const double drawn[] = {within(option.low, option.high, choices), option.low, option.high};
  double value = drawn[choices.weighted(kWeights)];
  for (const double other : drawn) {
    if (standard && value == *standard) value = other;
  }
  return accepted(option, value);
}

/// Not where a subject computes one value alone.
bool has_other_value(const Option& option) {
  if (option.kind != Option::Kind::choice) return option.nullable || option.low < option.high;
  return std::ranges::any_of(option.choices, [&](const std::string& choice) {
    return OptionValue(choice) != option.standard;
  });
}

/// A coefficient, whose term many a trainer leaves out where it is 0.
bool can_be_off(const Option& option) {
  const double* standard = std::get_if<double>(&option.standard);
  const bool number = option.kind == Option::Kind::real || option.kind == Option::Kind::integer;
  return number && option.low == 0.0 && !(standard && *standard == 0.0);
}

/// The first is the one that is used most, and has most of the faults.
Reduction draw_reduction(const LossSignature& signature, Choices& choices) {
  std::vector<int> weights(signature.reductions.size(), 1);
  weights.front() = 2;
  return signature.reductions[choices.weighted(weights)];
}

}  // namespace

OptionValue draw_option(const Option& option, Temper temper, Choices& choices) {
  switch (option.kind) {
    case Option::Kind::real:
    case Option::Kind::integer:
      return draw_number(option, temper, choices);
    case Option::Kind::flag:
      return draw_flag(option, temper, choices);
    case Option::Kind::choice:
      return draw_choice(option, temper, choices);
  }
  return option.standard;
}

LossSpec draw_spec(const LossSignature& signature, Temper temper, Choices& choices) {
  LossSpec spec = standard_spec(signature);
  if (!signature.reductions.empty()) spec.reduction = draw_reduction(signature, choices);
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    if (!signature.options[i].follows.empty()) continue;
    choices.enter(signature.options[i].name);
    spec.options[i].second = draw_option(signature.options[i], temper, choices);
  }
  follow(signature, spec);
  return spec;
}

LossSpec draw_other_spec(const LossSignature& signature, Choices& choices) {
  LossSpec spec = standard_spec(signature);
  if (!signature.reductions.empty()) spec.reduction = draw_reduction(signature, choices);
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    choices.enter(signature.options[i].name);
    spec.options[i].second = other_value(signature.options[i], choices);
  }
  follow(signature, spec);
  return spec;
}

LossSpec draw_spec_of_one(const LossSignature& signature, std::optional<std::size_t> turn,
                          Choices& choices) {
  LossSpec spec = standard_spec(signature);
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    const Option& option = signature.options[i];
    if (option.follows.empty() && has_other_value(option)) free.push_back(i);
  }
  if (free.empty()) return spec;
  const std::size_t turned =
      turn ? free[*turn % free.size()] : choices.one_of(std::span<const std::size_t>(free));
  const Option& option = signature.options[turned];
  const bool off = can_be_off(option) && choices.sometimes(0.5);
  spec.options[turned].second = off ? OptionValue(0.0) : other_value(option, choices);
  follow(signature, spec);
  return spec;
}

}  // namespace lossgate::fuzz
