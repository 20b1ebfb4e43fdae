// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// What a function is where a told option stands elsewhere than where it is to be asked.
struct Elsewhere {
  /// A value at which it is not the formula: its own default, else the first of others.
  struct Other {
    OptionValue value;
    bool own_default;
    double factor;  ///< of the formula, which may be a convention; 0 where it is another formula
  };
  std::optional<Other> other = {};
  std::vector<OptionValue> right = {};  ///< the other values at which it is the formula
  bool raises = false;                  ///< at some value
  /// Why that is a fault: "whoever leaves clip_high at its own default of 0.2 gets another
  /// formula". Empty where it may be none: a factor that is no
  /// power of the option or its square, a value that it refuses or of which it makes
  /// no number, the name of a choice that it may not have, what two options are together.
  std::string fault = {};
};

/// Of an option that stays at one value. A function that is wrong nowhere by this option alone is
/// right elsewhere, too, and nothing is said of it.
Elsewhere elsewhere(Function& function, const Interview& interview, const Option& option);

/// Answers = factor x formula in all cases where the told option stands at that value; 0 where
/// there is no such factor, or no case tells.
double factor_at(Function& function, const Interview& interview, const std::string& option,
                 const OptionValue& value);

/// All values at which it is known to be the formula, of which `kept` is one: "0, 0.5 or 1".
std::string right_at(const OptionValue& kept, const Elsewhere& elsewhere);

/// The parameter that the option is told by.
std::string parameter_of(const Interview& interview, const std::string& option);

}  // namespace lossgate::ci
