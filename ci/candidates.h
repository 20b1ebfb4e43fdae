// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ci/likeness.h"

namespace lossgate::ci {

/// Every combination of the values that these options are likely to have had when the function was
/// written; the plainest, which leave terms and clamps away, come first.
std::vector<OptionValues> combinations(const LossSignature& loss,
                                       const std::vector<std::string>& options);

/// The likely values of one option, and what others have there.
std::vector<OptionValue> usual_values(const LossSignature& loss, const Option& option);

/// Other values of an option, far enough from `value` to show: each choice, the other state of a
/// flag, none, numbers on both sides.
std::vector<OptionValue> alternatives(const Option& option, const OptionValue& value);

using Distance = std::function<double(const OptionValue&)>;

struct Nearest {
  OptionValue value;
  double distance;
};

/// Where the option has to stand for `distance` to be least, roughly: the best of all choices, or
/// of none and numbers all over its range.
Nearest nearest_value(const Option& option, const OptionValue& value, const Distance& distance);

/// The same number to as many digits as matter, and no more.
Nearest polished(const Option& option, const Nearest& rough, const Distance& distance);

/// Whether the loss reads the option under one of these reductions: a divisor is that of one alone.
bool is_read(const LossSignature& loss, const std::vector<Reduction>& reductions,
             const std::string& option);

/// Whether an option may be told that.
bool accepts(const Option& option, const OptionValue& value);

/// The nearest number of so many significant digits.
double to_digits(double number, int digits);

/// The value of an option among these, or null.
const OptionValue* find_value(const OptionValues& values, const std::string& option);
/// That of the option which the source of an argument names, converted or not.
const OptionValue* find_told(const OptionValues& values, const std::string& source);
void set_value(OptionValues& values, const std::string& option, OptionValue value);

}  // namespace lossgate::ci
