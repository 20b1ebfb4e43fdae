// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/options.h"

#include <algorithm>
#include <cmath>

namespace lossgate::fuzz {
namespace {

enum class Number { standard, none, near_standard, within, low_end, high_end };

constexpr Share<Number> kNumbers[] = {
    {Number::standard, {16, 8, 4}},     {Number::none, {1, 3, 3}},
    {Number::near_standard, {2, 1, 1}}, {Number::within, {1, 2, 2}},
    {Number::low_end, {0, 2, 3}},       {Number::high_end, {0, 2, 3}},
};

/// A thousandth of the range, so that a printed case stays readable; by size where the range spans
/// several orders of magnitude, and now and then where it begins at 0.
double within(double low, double high, Choices& choices) {
  const bool from_zero = low == 0.0 && high > 0.0 && choices.sometimes(0.5);
  if (from_zero || (low > 0.0 && high / low > 1000.0)) {
    const double drawn = choices.log_uniform(from_zero ? high * 0x1p-24 : low, high);
    const double unit = std::ldexp(1.0, std::ilogb(drawn) - 8);
    return std::clamp(std::round(drawn / unit) * unit, low, high);
  }
  return std::clamp(low + (high - low) * (static_cast<double>(choices.integer(0, 1000)) / 1000.0),
                    low, high);
}

OptionValue draw_number(const Option& option, Temper temper, Choices& choices) {
  const Number kind = pick(kNumbers, temper, choices);
  const double* standard = std::get_if<double>(&option.standard);
  double value = 0.0;
  switch (kind) {
    case Number::standard:
      return option.standard;
    case Number::none:
      if (option.nullable) return None{};
      return option.standard;
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
  if (option.kind == Option::Kind::integer) value = std::round(value);
  return std::isfinite(value) ? OptionValue(std::clamp(value, option.low, option.high))
                              : option.standard;
}

}  // namespace

OptionValue draw_option(const Option& option, Temper temper, Choices& choices) {
  const double keep = temper == Temper::plain ? 0.75 : 0.25;
  switch (option.kind) {
    case Option::Kind::real:
    case Option::Kind::integer:
      return draw_number(option, temper, choices);
    case Option::Kind::flag:
      if (!choices.sometimes(1.0 - keep)) return option.standard;
      return choices.sometimes(0.5) ? option.high : option.low;
    case Option::Kind::choice:
      if (option.nullable && choices.sometimes(0.1)) return None{};
      if (option.choices.empty() || !choices.sometimes(1.0 - keep)) return option.standard;
      return choices.one_of(std::span<const std::string>(option.choices));
  }
  return option.standard;
}

LossSpec draw_spec(const LossSignature& signature, Temper temper, Choices& choices) {
  LossSpec spec = standard_spec(signature);
  if (!signature.reductions.empty()) {
    spec.reduction = choices.one_of(std::span<const Reduction>(signature.reductions));
  }
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    spec.options[i].second = draw_option(signature.options[i], temper, choices);
  }
  return spec;
}

}  // namespace lossgate::fuzz
